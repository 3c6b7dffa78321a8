"""D07: the arms named chunks differently, so that being found by both never helped."""

from __future__ import annotations

import pytest

from ragcli.cli.formats import Reply, render
from ragcli.fuse import Arm, fuse, trace_options
from ragcli.options import FusionMethod, FusionSettings
from ragcli.types import Step
from tests.cli.results import fused, hybrid

BM25 = Arm("bm25", {1: 1, 2: 2}, {1: 6.0, 2: 5.0, 3: 0.0})
DENSE = Arm("dense", {3: 1, 2: 2}, {1: 0.1, 2: 0.8, 3: 0.9})
NAMES = {chunk: ("a.md", chunk) for chunk in (1, 2, 3)}
STEPS = (Step("bm25", 3, 2, 0.0), Step("dense", 3, 2, 0.0))


@pytest.mark.spec("R5", "R6", "C8")
@pytest.mark.parametrize("method", ["relative", "rrf"])
def test_what_both_found_comes_first_and_explain_shows_both_parts(method: FusionMethod) -> None:
    settings = FusionSettings(method=method)
    first, *others = fuse([BM25, DENSE], settings, NAMES)
    parts = [arm.part for arm in first.arms.values()]
    assert first.chunk == 2
    assert all(first.score > part > 0 for part in parts)
    assert all(first.score > other.score for other in others)
    found = hybrid(
        fused(first.score, method, dict(first.arms)), arms=STEPS, options=trace_options(["bm25", "dense"], settings)
    )
    shown = "".join(str(piece) for piece in render("plain", Reply(result=found, explain=True)))
    assert "= bm25 rank 2 score 5.0000: " in shown
    assert "= dense rank 2 cosine 0.8000: " in shown
