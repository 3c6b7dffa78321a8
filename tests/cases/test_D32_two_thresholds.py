"""D32: one threshold was used before and after reranking, on two scales. There are two keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.reranking import four_oaks, reranked, scored, serving
from tests.commands import Shell


@pytest.mark.spec("P3", "R4")
def test_each_has_its_own(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four_oaks(shell, tmp_path)
    with serving(lambda texts: {"results": scored([0.3, 0.05, 0.2, 0.01])}) as service:
        monkeypatch.setenv("RAGCLI_RERANK__MIN_SCORE", "0.1")
        floored = reranked(shell, service).json()
        monkeypatch.delenv("RAGCLI_RERANK__MIN_SCORE")
        monkeypatch.setenv("RAGCLI_RETRIEVAL__MIN_SCORE", "0.9")
        other = reranked(shell, service).json()
    assert [hit["document_id"] for hit in floored["hits"]] == ["a.md", "c.md"]
    reasons = {drop["document_id"]: drop["reason"] for drop in floored["dropped"]}
    assert reasons == {
        "b.md": "the reranker gives it 0.0500; rerank.min_score is 0.1",
        "d.md": "the reranker gives it 0.0100; rerank.min_score is 0.1",
    }
    assert len(other["hits"]) == 4  # the other one is a cosine's: it cuts no BM25 hit, and nothing of the reranker's
