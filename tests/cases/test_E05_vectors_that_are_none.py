"""E05: a text whose vector is zero or not a number is flagged; the others are fine, and no cosine is NaN."""

from __future__ import annotations

from math import isfinite, nan
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, Received, Reply, answer, vector_of


@pytest.mark.spec("M5", "M11")
@pytest.mark.parametrize("value", [0.0, nan])
def test_the_chunk_is_flagged(shell: Shell, service: EmbeddingService, tmp_path: Path, value: float) -> None:
    def rule(request: Received) -> Reply:
        return answer([[value] * 32 if "plum" in text else vector_of(text) for text in request.texts])

    service.rule = rule
    indexes.write(tmp_path / "docs", {"a.txt": "an oak", "b.txt": "a plum", "c.txt": "an elm"})
    done = shell("ingest", "docs")
    assert done.code == 4
    assert "b.txt: " in done.err
    assert "2 embedded, 1 without a vector" in done.err
    found = shell("query", "an oak", "--json").json()
    assert [hit["document_id"] for hit in found["hits"]] == ["a.txt", "c.txt"]
    assert all(isfinite(hit["arms"]["dense"]["score"]) for hit in found["hits"])
    assert "1 of 3 chunks have no vector yet" in found["warnings"][0]
    plum = shell("query", "a oak", "--json").json()["hits"]
    arms = {hit["document_id"]: hit["arms"]["dense"] for hit in plum}
    assert arms["b.txt"] == {"rank": None, "score": None, "part": 0.0}
