"""The best at both ends (spec P10)."""

from __future__ import annotations

import pytest

from ragcli.stages.reorder import Reorder, lost_in_the_middle
from tests.stages.corpus import FakeCorpus, order, ranking


@pytest.mark.spec("P10", "P11")
@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 2]),
        (3, [1, 3, 2]),
        (4, [1, 3, 4, 2]),
        (5, [1, 3, 5, 4, 2]),
        (6, [1, 3, 5, 6, 4, 2]),
        (7, [1, 3, 5, 7, 6, 4, 2]),
    ],
)
def test_even_places_from_the_left_odd_from_the_right(count: int, expected: list[int]) -> None:
    assert lost_in_the_middle(range(1, count + 1)) == expected


@pytest.mark.spec("P10")
def test_the_stage_keeps_scores_and_ranks() -> None:
    before = ranking(*"abcdef")
    after = Reorder()("q", before, FakeCorpus())
    assert order(after) == list("acefdb")
    assert [hit.rank for hit in after.hits] == [1, 3, 5, 6, 4, 2]
    assert {hit.chunk.document_id: hit.score for hit in after.hits} == {
        hit.chunk.document_id: hit.score for hit in before.hits
    }
