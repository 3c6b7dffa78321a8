"""Scores are placed by index, in every form in which services send them; what can't be placed is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.rerankers.replies import Unplaceable, has_logits, placed

SCORES = [0.25, 0.75, 0.5]
ORDER = [1, 2, 0]  # as services answer: best first


def items(name: str) -> list[dict[str, Any]]:
    return [{"index": index, name: SCORES[index]} for index in ORDER]


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    "answer",
    [
        {"id": "1", "results": items("relevance_score"), "meta": {}},
        {"results": items("score")},
        {"object": "list", "data": items("score"), "usage": {}},
        {"data": items("relevance_score")},
        items("score"),
        {"results": [{**item, "document": None} for item in items("relevance_score")]},
        {"results": [{**item, "document": {"text": "x"}} for item in items("relevance_score")]},
        {"results": None, "data": items("score")},
    ],
)
def test_every_known_form_is_placed_by_index(answer: Any) -> None:
    assert placed(answer, 3) == SCORES


@pytest.mark.spec("P4")
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_an_answer_means_nothing(scores: list[float], random: Any) -> None:
    shuffled = list(enumerate(scores))
    random.shuffle(shuffled)
    assert placed([{"index": index, "score": score} for index, score in shuffled], len(scores)) == scores


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([{"index": 0, "score": 1}, {"index": 0, "score": 1}], "the `index` 0 twice"),
        ([{"index": 0, "score": 1}, {"index": 2, "score": 1}], "an `index` of 2 for 2 passages"),
        ([{"index": -1, "score": 1}, {"index": 0, "score": 1}], "an `index` of -1 for 2 passages"),
        ([{"index": 1, "score": 1}], "1 scores for 2 passages, none with `index` 0"),
        ([], "0 scores for 2 passages"),
        ([{"index": 0, "score": float("nan")}], "a score that is no number"),
        ([{"index": 0, "score": float("inf")}], "a score that is no number"),
        ([{"index": 0, "score": 10**400}], "a score that is no number"),
        ([{"index": 0, "score": None}], "a score that is no number"),
        ([{"index": 0, "score": "0.5"}], "a score that is no number"),
        ([{"index": 0, "score": True}], "a score that is no number"),
        ([{"index": 0}], "a score that is no number"),
        ([{"score": 1}], "no known form"),
        ([{"index": "0", "score": 1}], "no known form"),
        ([{"index": True, "score": 1}], "no known form"),
        ([0.5, 0.25], "no known form"),
        ({"scores": [0.5, 0.25]}, "no known form"),
        ({"results": {"0": 0.5}}, "no known form"),
        ({}, "no known form"),
        (None, "no known form"),
        ("ok", "no known form"),
    ],
)
def test_what_can_not_be_placed_is_told(answer: Any, said: str) -> None:
    with pytest.raises(Unplaceable, match=said):
        placed(answer, 2)


@pytest.mark.spec("P4")
def test_only_a_score_beyond_0_and_1_makes_logits() -> None:
    assert not has_logits([])
    assert not has_logits([0.0, 0.007, 1.0])
    assert has_logits([0.5, 1.0000001])
    assert has_logits([-0.1, 0.5])
