"""D20: scores were zipped with the input, although the service answers in the order of its scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.reranking import TEXTS, four_oaks, reranked, scored, serving
from tests.commands import Shell


@pytest.mark.spec("P4")
def test_text_id_and_score_stay_together(shell: Shell, tmp_path: Path) -> None:
    four_oaks(shell, tmp_path)
    with serving(lambda texts: {"results": scored([len(text) / 100 for text in texts])}) as service:
        hits = reranked(shell, service).json()["hits"]
    assert [hit["document_id"] for hit in hits] == ["d.md", "c.md", "b.md", "a.md"]
    for hit in hits:
        judged = next(text for text in service.requests[0].body["documents"] if text.endswith(hit["text"]))
        assert TEXTS[hit["document_id"]] == hit["text"]
        assert hit["score"] == len(judged) / 100
        assert hit["score_kind"] == "rerank"
