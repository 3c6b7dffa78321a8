"""The dense reference itself, against numbers worked by hand."""

from __future__ import annotations

from math import sqrt

import pytest

from tests.reference import dense


def test_cosines_of_exact_numbers() -> None:
    assert dense.cosine([3.0, 4.0], [0.5, 0.0]) == pytest.approx(0.6, abs=1e-10)
    assert dense.cosine([2.0, 0.0], [0.5, 0.5]) == pytest.approx(sqrt(0.5), abs=1e-15)
    assert dense.cosine([0.0, -7.0], [0.0, 0.25]) == -1.0


def test_ranking_breaks_ties_by_name_then_index_and_obeys_filter_and_floor() -> None:
    corpus = {1: [1.0, 0.0], 2: [1.0, 0.0], 3: [0.0, 1.0], 4: [1.0, 0.0]}
    names = {1: ("b", 0), 2: ("a", 2), 3: ("a", 0), 4: ("a", 1)}
    assert dense.ranking(corpus, names, [2.0, 0.0], 9) == [(4, 1.0), (2, 1.0), (1, 1.0), (3, 0.0)]
    assert dense.ranking(corpus, names, [2.0, 0.0], 2, allowed={1, 2, 3}) == [(2, 1.0), (1, 1.0)]
    assert dense.ranking(corpus, names, [2.0, 0.0], 9, allowed={1, 3}, floor=0.5) == [(1, 1.0)]
