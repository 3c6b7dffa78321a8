"""D26: a score that lies between 0 and 1 already was put through the logistic function again: 0.007 became 0.5018."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.reranking import four_oaks, reranked, scored, serving
from tests.commands import Shell


@pytest.mark.spec("P4")
def test_a_small_score_stays_small(shell: Shell, tmp_path: Path) -> None:
    four_oaks(shell, tmp_path)
    with serving(lambda texts: {"results": scored([0.007, 0.002, 0.001, 0.0])}) as service:
        hits = reranked(shell, service).json()["hits"]
    assert [hit["score"] for hit in hits] == [0.007, 0.002, 0.001, 0.0]
