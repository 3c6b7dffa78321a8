"""E04: a service's vectors are placed by their index and counted, in whatever form they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, Received, Reply, as_base64, embeddings, items, unit, vector_of

NAMES = [f"{number}.txt" for number in range(10)]


def shuffled(request: Received) -> Reply:
    return Reply(body={"data": items([vector_of(text) for text in request.texts])[::-1]})


def in_base64(request: Received) -> Reply:
    return Reply(body={"data": items([as_base64(vector_of(text)) for text in request.texts])})


def half_of_them(request: Received) -> Reply:
    data = items([vector_of(text) for text in request.texts])
    return Reply(body={"data": data[: len(data) // 2] or data})


@pytest.mark.spec("M5", "M11")
@pytest.mark.parametrize("rule", [embeddings, shuffled, in_base64, half_of_them])
def test_every_chunk_has_the_vector_of_its_own_text(
    shell: Shell, service: EmbeddingService, tmp_path: Path, rule: object
) -> None:
    service.rule = rule  # type: ignore[assignment]
    indexes.write(tmp_path / "docs", {name: f"word{name[0]} alpha" for name in NAMES})
    assert shell("ingest", "docs").code == 0
    stored = indexes.vectors_of(indexes.index_of(tmp_path))
    assert len(stored) == len(NAMES)
    for name in NAMES:
        text = next(text for text in service.texts if f"word{name[0]} " in text)
        vector = np.frombuffer(stored[name, 0][1], "<f2").astype(float)
        assert vector.tolist() == pytest.approx(unit(vector_of(text)), abs=1e-3)


@pytest.mark.spec("M5", "C9")
def test_a_dimension_that_changes_is_an_error_that_names_both(
    shell: Shell, service: EmbeddingService, tmp_path: Path
) -> None:
    docs = indexes.write(tmp_path / "docs", {"a.txt": "an oak"})
    assert shell("ingest", "docs").code == 0
    service.rule = lambda request: Reply(body={"data": items([vector_of(text, 8) for text in request.texts])})
    indexes.write(docs, {"b.txt": "an elm"})
    failed = shell("ingest", "docs")
    assert failed.code in {3, 4}
    assert "8" in failed.err
    assert "32" in failed.err
    assert "1 of 2 chunks" in shell("inspect").out
