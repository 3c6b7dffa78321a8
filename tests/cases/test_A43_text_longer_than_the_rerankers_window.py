"""A43: a text longer than the reranker's window crashed it. It is judged by chunks, cut, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.models import toy_bert


@pytest.mark.spec("P3", "P4", "R8")
def test_half_a_megabyte_in_one_document(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = toy_bert.write_folder(tmp_path / "toy")
    indexes.write(tmp_path / "docs", {"long.txt": "one two three four five a b c d e\n" * 15_000})
    assert shell("ingest", "docs").code == 0
    found = shell(
        "query", "five", "--mode", "keyword", "--reranker", "onnx", "--rerank-model", str(model), "--json", "--quiet"
    )  # fmt: skip
    assert found.code == 0
    hits = found.json()["hits"]
    assert {hit["score_kind"] for hit in hits} == {"rerank"}
    assert all(len(hit["text"]) > 1000 for hit in hits)  # what is shown is whole
    (warning,) = found.json()["warnings"]
    assert warning.startswith("15 of 15 passages, with the query, are longer than the reranker's window of 24 tokens: ")
