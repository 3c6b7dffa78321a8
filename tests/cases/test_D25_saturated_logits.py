"""D25: logits were squashed to 1.0 before they were sorted, and the reranker had no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.reranking import four_oaks, reranked, scored, serving
from tests.commands import Shell


@pytest.mark.spec("P4")
@pytest.mark.parametrize("logits", [[15.1, 17.3, 20.2, 2.0], [40.0, 50.0, 60.0, 38.0]])
def test_the_order_is_that_of_the_logits(shell: Shell, tmp_path: Path, logits: list[float]) -> None:
    four_oaks(shell, tmp_path)
    with serving(lambda texts: {"results": scored(logits)}) as service:
        hits = reranked(shell, service).json()["hits"]
    assert [hit["document_id"] for hit in hits] == ["c.md", "b.md", "a.md", "d.md"]
    assert all(0 <= hit["score"] <= 1 for hit in hits)
    assert any(step["note"] == f"logit {max(logits):.4f}" for step in hits[0]["trace"])
