"""D05: a hit found twice kept the lower score, that of the last list.

A chunk is one candidate however many arms find it, and each arm's part is in its score: nothing is kept or lost. Of
a document's chunks, the best one stands for it.
"""

from __future__ import annotations

import pytest

from ragcli.cli.formats import Reply, render
from ragcli.fuse import Arm, fuse
from ragcli.options import FusionSettings
from tests.cli.results import hit, result

NAMES = {chunk: ("a.md", chunk) for chunk in (1, 2)}
HIGH = Arm("bm25", {1: 1}, {1: 8.0, 2: 0.0})
LOW = Arm("dense", {2: 1, 1: 2}, {1: 0.2, 2: 0.9})


@pytest.mark.spec("R5")
@pytest.mark.parametrize("arms", [[HIGH, LOW], [LOW, HIGH]])
def test_the_order_of_the_lists_does_not_matter_and_no_part_is_lost(arms: list[Arm]) -> None:
    found = {one.chunk: one.score for one in fuse(arms, FusionSettings(method="rrf"), NAMES)}
    assert found == {1: pytest.approx(1 / 61 + 1 / 62, abs=1e-15), 2: pytest.approx(1 / 61, abs=1e-15)}


@pytest.mark.spec("C11")
@pytest.mark.parametrize("scores", [(0.9, 0.2), (0.2, 0.9)])
def test_a_document_found_twice_keeps_the_higher_score(scores: tuple[float, float]) -> None:
    hits = (hit(score=score, index=index, document_id="a.md") for index, score in enumerate(scores))
    (line,) = render("trec", Reply(result=result(*hits)))
    assert line == b"1 Q0 a.md 1 0.9 ragcli\n"
