"""H05, of judging: a judge that writes prose has given no score. It is counted, and never taken for 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.answering import answering, trees
from tests.commands import Shell
from tests.streams import whole


@pytest.mark.spec("P4")
def test_a_reply_without_a_number_is_no_judgement(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees(shell, tmp_path)
    replies = ("The passage is quite relevant.", "8", "NaN")
    with answering(monkeypatch, *(whole(text) for text in replies)):
        done = shell("query", "an oak, an elm, a yew", "--reranker", "llm", "-k", "3", "--json")
    value = done.json()
    kinds = {hit["document_id"]: hit["score_kind"] for hit in value["hits"]}
    assert sorted(kinds.values()) == ["bm25", "bm25", "rerank"]
    judged = next(hit for hit in value["hits"] if hit["score_kind"] == "rerank")
    assert judged["score"] == pytest.approx(0.8)
    assert any("2 of 3" in warning for warning in value["warnings"])
