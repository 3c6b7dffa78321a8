"""What became of each hit, against results whose story is known."""

from __future__ import annotations

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.explain import (
    Stop,
    fate,
    is_reordered,
    journey,
    place_of,
    rank_of,
    rounds,
    score_parts,
    standings,
)
from ragcli.fuse import Arm, fuse
from ragcli.options import FusionSettings
from ragcli.types import Drop, Ranking, Step, Trace
from tests.cli.results import found, fused, hit, of_stages, result, staged, step


def told(stops: tuple[Stop, ...]) -> list[tuple[str, int, int]]:
    return [(stop.stage, stop.rank_before, stop.rank) for stop in stops]


@pytest.mark.spec("C8")
def test_a_journey_names_the_stages_that_touched_or_moved_a_hit() -> None:
    shown, ran = staged(), rounds(staged())
    a, c, e = (journey(one, ran) for one in shown.ranking.hits)
    assert told(a) == [("mmr", 1, 1)]
    assert told(c) == [("redundancy", 3, 2), ("mmr", 2, 3), ("reorder", 3, 2)]
    assert told(e) == [("redundancy", 5, 4), ("mmr", 4, 2), ("reorder", 2, 3)]


@pytest.mark.spec("C8")
def test_a_stop_has_the_score_before_and_after_and_its_parts() -> None:
    shown = staged()
    moved, changed, _ = journey(shown.ranking.hits[2], rounds(shown))
    assert (moved.score_before, moved.kind_before, moved.score, moved.score_kind) == (0.5, "relative", 0.5, "relative")
    assert (moved.parts, moved.note) == ({}, "")
    assert (changed.score_before, changed.kind_before) == (0.5, "relative")
    assert changed.score == pytest.approx(0.2, abs=1e-12)
    assert changed.score_kind == "mmr"
    assert changed.parts == {"relevance": 0.25, "likeness": -0.05}
    assert changed.note == "most like a.md#0, cosine 0.1"


@pytest.mark.spec("C8")
def test_two_marks_of_one_stage_are_one_stop() -> None:
    twice = (
        found("a").rescored("rerank", "rerank", {"reranker": 0.7}, "logit 0.85").marked("rerank", "cut to 512 tokens")
    )
    shown = of_stages([twice], [step("rerank", "a", "a")])
    (stop,) = journey(twice, rounds(shown))
    assert (stop.score_before, stop.score, stop.parts) == (0.9, 0.7, {"reranker": 0.7})
    assert stop.note == "logit 0.85; cut to 512 tokens"


@pytest.mark.spec("C8")
def test_without_stages_there_is_no_journey() -> None:
    shown = result(hit())
    assert rounds(shown) == ()
    assert journey(hit(), rounds(shown)) == ()
    assert fate("handbook/leave.md", 3, shown).stops == ()


def test_a_stage_that_leaves_nothing_is_a_round_too() -> None:
    gone = tuple(Drop(found(letter), "where", "score > 1") for letter in "ba")
    shown = of_stages([], [Step("where", 2, 0, 0.001), Step("cut", 0, 0, 0.0)], gone)
    (only,) = rounds(shown)
    assert (only.stage, only.before, only.after) == ("where", {("a.md", 0): 1, ("b.md", 1): 2}, {})


@pytest.mark.spec("C8")
def test_the_order_before_the_first_stage_is_that_of_retrieval() -> None:
    """Equal scores by name, whatever stages made of them."""
    same = [fused(0.5, "relative", {}, document_id=name, index=index) for name, index in (("b", 1), ("a", 9), ("a", 2))]
    steps = [Step("cut", 3, 1, 0.0, {}, (), (("b", 1),))]
    best = same[0].rescored("rerank", "rerank", {"reranker": 0.1})
    shown = of_stages([best], steps, tuple(Drop(one, "cut", "no room") for one in same[1:]))
    assert rounds(shown)[0].before == {("a", 2): 1, ("a", 9): 2, ("b", 1): 3}


@pytest.mark.spec("C8")
def test_what_a_chunk_became() -> None:
    shown = staged()
    e = fate("e.md", 4, shown)
    assert (e.rank, e.position, e.drop) == (2, 3, None)
    assert told(e.stops)[-1] == ("reorder", 2, 3)
    d = fate("d.md", 3, shown)
    assert d.drop is not None
    assert (d.drop.stage, d.reason, d.position) == ("budget", "needs 300 tokens, 120 are left", None)
    assert told(d.stops) == [("redundancy", 4, 3), ("mmr", 3, 4)]
    b = fate("b.md", 1, shown)
    assert (b.drop is not None and b.drop.stage, b.stops) == ("redundancy", ())


@pytest.mark.spec("C8")
def test_what_no_arm_put_forward_is_told_with_what_they_gave() -> None:
    never = fate("z.md", 0, staged())
    assert never.hit is None
    assert never.reason == "not among the candidates: bm25 gave 100 of 700 chunks, dense gave 100 of 690 chunks"
    assert fate("z.md", 0, result(trace=Trace("q"))).reason == "not among the candidates"


def test_where_a_dropped_hit_stood() -> None:
    shown = staged()
    assert [place_of(drop, rounds(shown)) for drop in shown.ranking.dropped] == [2, 5, 4]
    assert place_of(Drop(found("a"), "elsewhere", "x"), rounds(shown)) is None


@pytest.mark.spec("A11")
def test_each_round_has_its_order_with_the_scores_of_that_time() -> None:
    shown = staged()
    ran = rounds(shown)
    orders = dict(zip([one.stage for one in ran], standings(ran, shown), strict=True))
    letters = {name: "".join(one.hit.chunk.document_id[0] for one in order) for name, order in orders.items()}
    assert letters == {"redundancy": "acdef", "mmr": "aecd", "cut": "aecd", "budget": "aec", "reorder": "ace"}
    assert [(one.score, one.score_kind) for one in orders["redundancy"]] == [
        (score, "relative") for score in (0.9, 0.7, 0.6, 0.5, 0.4)
    ]
    assert [one.score for one in orders["mmr"]] == pytest.approx([0.45, 0.2, 0.225, 0.12], abs=1e-12)
    assert {one.score_kind for one in orders["mmr"]} == {"mmr"}
    assert [one.rank_before for one in orders["mmr"]] == [1, 4, 2, 3]


@pytest.mark.spec("C2", "P10")
def test_the_rank_is_the_position_unless_a_stage_reordered_the_list() -> None:
    shown = staged().ranking
    assert [rank_of(position, one) for position, one in enumerate(shown.hits, 1)] == [1, 3, 2]
    assert is_reordered(shown)
    assert not is_reordered(staged(reordered=False).ranking)
    assert not is_reordered(Ranking())


NUMBERS = st.floats(-100, 100)
PARTS = st.dictionaries(st.sampled_from(["relevance", "likeness", "retrieval", "reranker"]), NUMBERS, min_size=1)


@pytest.mark.spec("C8", "R2")
@given(changes=st.lists(st.tuples(st.sampled_from(["mmr", "rerank", "blend"]), PARTS), max_size=4), notes=st.booleans())
def test_the_parts_add_up_to_the_score_whatever_stages_did(
    changes: list[tuple[str, dict[str, float]]], notes: bool
) -> None:
    shown = found("b")
    for kind, parts in changes:
        shown = shown.rescored(kind, kind, parts)
        shown = shown.marked("budget", "kept") if notes else shown
    assert abs(fsum(score_parts(shown).values()) - shown.score) <= 1e-12
    assert score_parts(shown) == (changes[-1][1] if changes else {"bm25": 0.4, "dense": 0.4})


@pytest.mark.spec("C8", "R2")
@given(
    scores=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8),
    method=st.sampled_from(["relative", "zscore", "rrf"]),
)
def test_before_any_stage_the_arms_add_up_to_it(scores: list[tuple[float, float]], method: str) -> None:
    arms = [
        Arm(name, {chunk: rank for rank, chunk in enumerate(range(len(scores)), 1)}, dict(enumerate(column)))
        for name, column in zip(("bm25", "dense"), zip(*scores, strict=True), strict=True)
    ]
    settings = FusionSettings(method=method)  # type: ignore[arg-type]
    for one in fuse(arms, settings, {chunk: ("a.md", chunk) for chunk in range(len(scores))}):
        shown = fused(one.score, method, dict(one.arms))
        assert abs(fsum(score_parts(shown).values()) - shown.score) <= 1e-12
