"""D01: reciprocal rank fusion ignored the weights of the retrievers."""

from __future__ import annotations

import pytest

from ragcli.fuse import Arm, fuse
from ragcli.options import FusionMethod, FusionSettings

METHODS: tuple[FusionMethod, ...] = ("relative", "zscore", "rrf")
NAMES = {chunk: ("a.md", chunk) for chunk in range(1, 5)}
# the arms are of opposite minds
BM25 = Arm("bm25", {1: 1, 2: 2, 3: 3, 4: 4}, {1: 9.0, 2: 7.0, 3: 3.0, 4: 1.0})
DENSE = Arm("dense", {4: 1, 3: 2, 2: 3, 1: 4}, {1: 0.1, 2: 0.3, 3: 0.7, 4: 0.9})


def order(method: FusionMethod, bm25: float, dense: float) -> list[int]:
    settings = FusionSettings(method=method, weights={"bm25": bm25, "dense": dense})
    return [one.chunk for one in fuse([BM25, DENSE], settings, NAMES)]


@pytest.mark.spec("R5", "R6")
@pytest.mark.parametrize("method", METHODS)
def test_without_dense_the_order_is_that_of_bm25(method: FusionMethod) -> None:
    assert order(method, 1, 0) == [1, 2, 3, 4]
    assert order(method, 0, 1) == [4, 3, 2, 1]


@pytest.mark.spec("R5", "R6")
@pytest.mark.parametrize("method", METHODS)
def test_four_to_one_is_not_one_to_four(method: FusionMethod) -> None:
    assert order(method, 4, 1)[0] == 1
    assert order(method, 1, 4)[0] == 4
    assert order(method, 4, 1) == order(method, 1, 4)[::-1]
