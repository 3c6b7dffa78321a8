"""Fusion: hand-worked values, and the plain loops of `tests/reference/fuse.py` on whatever hypothesis thinks of."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.fuse import Arm, Fused, fuse, trace_options
from ragcli.options import FusionMethod, FusionSettings
from ragcli.types import ArmScore
from tests.reference import fuse as reference

METHODS: tuple[FusionMethod, ...] = ("relative", "zscore", "rrf")
NAMES = {chunk: (f"doc{chunk % 5}", chunk) for chunk in range(100)}


def arm(name: str, scores: Mapping[int, float], looked_up: Mapping[int, float] | None = None) -> Arm:
    """An arm that ranked `scores`, best first, and knows those of `looked_up` too."""
    best = sorted(scores, key=lambda chunk: (-scores[chunk], NAMES[chunk]))
    return Arm(name, {chunk: rank for rank, chunk in enumerate(best, 1)}, {**scores, **(looked_up or {})})


def by(method: FusionMethod = "relative", **changes: Any) -> FusionSettings:
    return FusionSettings(method=method, **changes)


def order(found: list[Fused]) -> list[int]:
    return [one.chunk for one in found]


def scores(found: list[Fused]) -> dict[int, float]:
    return {one.chunk: one.score for one in found}


# Three chunks. bm25 ranked 1 and 2, and has no term of 3; dense ranked 3 and 1, and 2 was looked up.
BM25 = arm("bm25", {1: 8.0, 2: 2.0}, {3: 0.0})
DENSE = arm("dense", {3: 0.9, 1: 0.6}, {2: 0.4})


@pytest.mark.spec("R6")
def test_relative_is_the_mean_of_scores_scaled_over_the_union() -> None:
    found = fuse([BM25, DENSE], by(), NAMES)
    assert scores(found) == {
        1: pytest.approx(0.5 * 1.0 + 0.5 * 0.4, abs=1e-15),  # (0.6 - 0.4) / 0.5
        3: pytest.approx(0.5 * 0.0 + 0.5 * 1.0, abs=1e-15),
        2: pytest.approx(0.5 * 0.25 + 0.5 * 0.0, abs=1e-15),  # 2 / 8
    }
    assert order(found) == [1, 3, 2]
    assert found[0].normalized is None
    assert found[1].arms == {"bm25": ArmScore(None, 0.0, 0.0), "dense": ArmScore(1, 0.9, 0.5)}


@pytest.mark.spec("R6")
def test_zscore_is_the_mean_of_standardised_scores() -> None:
    found = scores(fuse([BM25, DENSE], by("zscore"), NAMES))
    # bm25: mean 10/3, variance 104/9; dense: mean 19/30, variance 38/900
    expected = {
        1: (8 - 10 / 3) / sqrt(104 / 9) + (0.6 - 19 / 30) / sqrt(38 / 900),
        2: (2 - 10 / 3) / sqrt(104 / 9) + (0.4 - 19 / 30) / sqrt(38 / 900),
        3: (0 - 10 / 3) / sqrt(104 / 9) + (0.9 - 19 / 30) / sqrt(38 / 900),
    }
    assert found == {chunk: pytest.approx(score / 2, abs=1e-12) for chunk, score in expected.items()}


@pytest.mark.spec("R5")
def test_rrf_sums_reciprocal_ranks_and_says_how_near_the_best_that_is() -> None:
    found = fuse([BM25, DENSE], by("rrf"), NAMES)
    assert scores(found) == {
        1: pytest.approx(1 / 61 + 1 / 62, abs=1e-15),
        3: pytest.approx(1 / 61, abs=1e-15),
        2: pytest.approx(1 / 62, abs=1e-15),
    }
    assert order(found) == [1, 3, 2]
    assert [one.normalized for one in found] == [
        pytest.approx((1 / 61 + 1 / 62) / (2 / 61), abs=1e-15),
        pytest.approx(0.5, abs=1e-15),
        pytest.approx(61 / 124, abs=1e-15),
    ]


@pytest.mark.spec("R5")
def test_normalize_makes_the_share_the_score_and_its_parts_still_add_up() -> None:
    raw, shares = (fuse([BM25, DENSE], by("rrf", normalize=n, rrf_k=10), NAMES) for n in (False, True))
    assert [one.score for one in shares] == [one.normalized for one in shares] == [one.normalized for one in raw]
    assert all(abs(fsum(a.part for a in one.arms.values()) - one.score) < 1e-12 for one in shares)


@pytest.mark.spec("R5")
def test_one_arm_alone_is_still_rrf() -> None:
    found = fuse([BM25], by("rrf", weights={"bm25": 3}), NAMES)
    assert scores(found) == pytest.approx({1: 3 / 61, 2: 3 / 62}, abs=1e-15)
    assert [one.normalized for one in found] == [1.0, pytest.approx(61 / 62, abs=1e-15)]


@pytest.mark.spec("R5")
def test_the_best_a_chunk_can_be_is_1_by_every_bounded_method() -> None:
    arms = [arm("bm25", {1: 3.0, 2: 1.0}), arm("dense", {1: 0.8, 2: 0.1})]
    assert fuse(arms, by("rrf", weights={"bm25": 4, "dense": 1}), NAMES)[0].normalized == pytest.approx(1.0, abs=1e-15)
    assert fuse(arms, by(weights={"bm25": 0.3, "dense": 0.7}), NAMES)[0].score == pytest.approx(1.0, abs=1e-15)


@pytest.mark.spec("R6")
@pytest.mark.parametrize("method", METHODS)
def test_an_arm_that_found_nothing_adds_nothing(method: FusionMethod) -> None:
    silent = Arm("bm25", {}, {1: 0.0, 2: 0.0, 3: 0.0})
    cut = Arm("bm25", {}, {1: 0.3, 2: 0.1})
    alone = scores(fuse([DENSE], by(method), NAMES))
    for other in (silent, cut, Arm("bm25", {}, {})):
        found = fuse([other, DENSE], by(method), NAMES)
        assert scores(found) == alone
        assert {one.arms["bm25"].part for one in found} == {0.0}


@pytest.mark.spec("R6")
def test_a_constant_arm_says_of_all_that_they_are_its_best_and_changes_no_order() -> None:
    constant = arm("bm25", {1: 2.0, 2: 2.0}, {3: 2.0})
    found = fuse([constant, DENSE], by(), NAMES)
    assert {one.arms["bm25"].part for one in found} == {0.5}
    assert order(found) == [3, 1, 2]
    standardised = fuse([constant, DENSE], by("zscore"), NAMES)
    assert {one.arms["bm25"].part for one in standardised} == {0.0}
    assert order(standardised) == [3, 1, 2]


@pytest.mark.spec("R6")
def test_equal_scores_whose_mean_is_rounded_are_constant_too() -> None:
    found = fuse([arm("dense", {1: 0.1, 2: 0.1, 3: 0.1})], by("zscore"), NAMES)
    assert {one.score for one in found} == {0.0}


@pytest.mark.spec("R6")
@pytest.mark.parametrize(("method", "expected"), [("relative", 1.0), ("zscore", 0.0), ("rrf", 2 / 61)])
def test_a_single_candidate(method: FusionMethod, expected: float) -> None:
    found = fuse([arm("bm25", {7: 4.2}), arm("dense", {7: -0.1})], by(method), NAMES)
    assert scores(found) == {7: pytest.approx(expected, abs=1e-15)}


def test_a_chunk_without_a_vector_gets_nothing_of_the_dense_arm() -> None:
    found = fuse([arm("bm25", {1: 8.0, 2: 2.0}, {3: 0.0}), arm("dense", {3: 0.9}, {2: 0.4})], by(), NAMES)
    first = next(one for one in found if one.chunk == 1)
    assert first.arms["dense"] == ArmScore(None, None, 0.0)
    assert first.score == 0.5


@pytest.mark.parametrize("method", METHODS)
def test_nothing_to_fuse(method: FusionMethod) -> None:
    assert fuse([], by(method), NAMES) == []
    assert fuse([Arm("bm25", {}, {}), Arm("dense", {}, {})], by(method), NAMES) == []


@pytest.mark.spec("R5")
def test_equal_scores_go_by_document_and_chunk() -> None:
    names = {4: ("b.md", 0), 5: ("a.md", 2), 6: ("a.md", 10)}
    found = fuse([arm("bm25", {4: 1.0, 5: 1.0, 6: 1.0})], by(), names)
    assert order(found) == [5, 6, 4]


@pytest.mark.spec("R5", "R6")
@pytest.mark.parametrize("method", METHODS)
def test_weights_decide(method: FusionMethod) -> None:
    """Case D01: weights are applied; one of 0 leaves the other arm's order."""
    arms = [arm("bm25", {1: 9.0, 2: 5.0, 3: 4.0}), arm("dense", {3: 0.9, 2: 0.6, 1: 0.4})]
    assert order(fuse(arms, by(method, weights={"bm25": 4, "dense": 1}), NAMES)) == [1, 2, 3]
    assert order(fuse(arms, by(method, weights={"bm25": 1, "dense": 4}), NAMES)) == [3, 2, 1]
    only = fuse(arms, by(method, weights={"bm25": 1, "dense": 0}), NAMES)
    assert order(only) == [1, 2, 3]
    assert set(only[0].arms) == {"bm25"}


@pytest.mark.spec("R5", "R6")
@pytest.mark.parametrize("method", ["relative", "rrf"])
def test_found_by_both_arms_scores_above_what_either_alone_gives(method: FusionMethod) -> None:
    """Case D07: one chunk, one id, whoever found it."""
    arms = [arm("bm25", {1: 3.0, 2: 2.0}, {3: 0.0}), arm("dense", {3: 0.7, 2: 0.6}, {1: 0.1})]
    both = next(one for one in fuse(arms, by(method), NAMES) if one.chunk == 2)
    assert both.score > max(part.part for part in both.arms.values()) > 0
    assert order(fuse(arms, by(method), NAMES))[0] == 2


def test_the_trace_says_what_was_fused_with() -> None:
    assert trace_options(["bm25", "dense"], by(weights={"dense": 0.7})) == {
        "method": "relative",
        "weights": {"bm25": 0.5, "dense": 0.7},
    }
    assert trace_options(["bm25"], by("rrf")) == {
        "method": "rrf",
        "weights": {"bm25": 1.0},
        "k": 60,
        "normalize": False,
    }


# --- whatever hypothesis thinks of

SCORE = st.floats(-1e4, 1e4, allow_subnormal=False).map(lambda score: round(score, 6))
WEIGHT = st.floats(0.001, 1000)


@st.composite
def arms_of(draw: st.DrawFn) -> list[Arm]:
    """Two arms over a union: each ranked some of it, and knows the scores of these and of some others."""
    union = draw(st.lists(st.integers(0, 99), unique=True, max_size=12))
    found = []
    for name in ("bm25", "dense"):
        known = draw(st.dictionaries(st.sampled_from(union), SCORE, max_size=12)) if union else {}
        depth = draw(st.integers(0, len(known)))
        best = sorted(known, key=lambda chunk: (-known[chunk], NAMES[chunk]))[:depth]
        found.append(Arm(name, {chunk: rank for rank, chunk in enumerate(best, 1)}, known))
    return found


@given(arms=arms_of(), weights=st.tuples(WEIGHT, WEIGHT), k=st.integers(1, 200), method=st.sampled_from(METHODS))
@settings(max_examples=300, deadline=None)
def test_equals_plain_loops(arms: list[Arm], weights: tuple[float, float], k: int, method: FusionMethod) -> None:
    plain = [(one.ranked, one.scores, weight) for one, weight in zip(arms, weights, strict=True)]
    expected = reference.rrf(plain, k) if method == "rrf" else getattr(reference, method)(plain)
    chosen = by(method, weights=dict(zip(("bm25", "dense"), weights, strict=True)), rrf_k=k)
    found = scores(fuse(arms, chosen, NAMES))
    assert set(found) == set(expected)
    assert found == {chunk: pytest.approx(score, rel=1e-9, abs=1e-9) for chunk, score in expected.items()}


@given(arms=arms_of(), normalize=st.booleans(), method=st.sampled_from(METHODS), seed=st.randoms())
@settings(max_examples=200, deadline=None)
def test_the_order_of_the_input_does_not_matter_and_parts_add_up(
    arms: list[Arm], normalize: bool, method: FusionMethod, seed: Any
) -> None:
    chosen = by(method, normalize=normalize, weights={"bm25": 0.3, "dense": 0.7})
    found = fuse(arms, chosen, NAMES)
    assert [(-one.score, NAMES[one.chunk]) for one in found] == sorted((-one.score, NAMES[one.chunk]) for one in found)
    assert len(set(order(found))) == len(found)
    for one in found:
        assert one.normalized is None or 0 < one.normalized <= 1
        assert abs(fsum(part.part for part in one.arms.values()) - one.score) <= 1e-12
    shuffled = [Arm(a.name, _shuffled(a.ranked, seed), _shuffled(a.scores, seed)) for a in reversed(arms)]
    assert [(one.chunk, one.score, one.normalized) for one in fuse(shuffled, chosen, NAMES)] == [
        (one.chunk, one.score, one.normalized) for one in found
    ]


def _shuffled(mapping: Mapping[int, Any], seed: Any) -> dict[int, Any]:
    pairs = list(mapping.items())
    seed.shuffle(pairs)
    return dict(pairs)


@given(arms=arms_of(), method=st.sampled_from(METHODS))
@settings(max_examples=100, deadline=None)
def test_a_weight_of_0_is_as_if_the_arm_had_not_run(arms: list[Arm], method: FusionMethod) -> None:
    chosen = by(method, weights={"bm25": 1, "dense": 0})
    found = fuse(arms, chosen, NAMES)
    assert found == fuse(arms[:1], chosen, NAMES)
    assert set(order(found)) == set(arms[0].ranked)


@given(arms=arms_of())
@settings(max_examples=100, deadline=None)
def test_relative_scores_lie_between_0_and_the_sum_of_the_weights(arms: list[Arm]) -> None:
    for one in fuse(arms, by(), NAMES):
        assert 0.0 <= one.score <= 1.0
