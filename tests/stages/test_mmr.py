"""Maximal Marginal Relevance (spec P2), by hand and against plain loops."""

from __future__ import annotations

from math import cos, inf, nan, radians, sin
from random import Random

import numpy as np
import pytest

from ragcli.errors import IndexMismatch, OptionError
from ragcli.stages.mmr import Mmr, mmr
from tests.reference.mmr import mmr as in_loops
from tests.reference.redundancy import cosine
from tests.stages.corpus import FakeCorpus, chunk, order, ranking, reasons

ANGLES = {"a": 5, "b": 8, "c": 10, "d": 60, "e": 100}  # degrees from the query


def direction(degrees: float) -> tuple[float, float]:
    return cos(radians(degrees)), sin(radians(degrees))


VECTORS = [direction(angle) for angle in ANGLES.values()]
CORPUS = FakeCorpus({(name, 0): direction(angle) for name, angle in ANGLES.items()}, query=(1, 0))


@pytest.mark.spec("P2", "P11")
@pytest.mark.parametrize(
    ("lambda_", "expected"),
    [(1, [0, 1, 2, 3, 4]), (0.9, [0, 1, 2, 3, 4]), (0.1, [0, 4, 3, 2, 1]), (0, [0, 4, 3, 2, 1])],
)
def test_lambda_from_relevance_to_difference(lambda_: float, expected: list[int]) -> None:
    assert mmr((1, 0), VECTORS, 5, lambda_).order == expected


@pytest.mark.spec("P2")
def test_the_first_pick_is_the_most_relevant_whatever_lambda() -> None:
    vectors = [direction(40), direction(-3), direction(90)]
    assert {mmr((1, 0), vectors, 1, lambda_).order[0] for lambda_ in (0, 0.2, 0.5, 1)} == {1}


@pytest.mark.spec("P2")
def test_a_pick_says_what_it_is_made_of() -> None:
    first, second = mmr((1, 0), VECTORS, 2, 0.3).picked
    assert (first.position, first.twin, first.likeness) == (0, None, 0.0)
    assert first.parts(0.3) == {"relevance": pytest.approx(0.3 * cos(radians(5)), abs=1e-9), "likeness": 0.0}
    assert (second.position, second.twin) == (4, 0)
    assert second.likeness == pytest.approx(cos(radians(95)), abs=1e-9)
    assert sum(second.parts(0.3).values()) == pytest.approx(0.3 * cos(radians(100)) - 0.7 * cos(radians(95)), abs=1e-9)


@pytest.mark.spec("P2", "P11")
def test_two_thousand_random_inputs_against_plain_loops() -> None:
    random = Random(2)
    for _ in range(2000):
        count, dimension = random.randint(1, 10), random.randint(1, 4)
        pool = [[random.choice([-1.0, 0.0, 0.5, 1.0, 3.0]) for _ in range(dimension)] for _ in range(5)]
        vectors, query = [random.choice(pool) for _ in range(count)], random.choice(pool)
        lambda_, k = random.choice([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]), random.randint(1, count + 2)
        wanted = in_loops([cosine(query, vector) for vector in vectors], vectors, k, lambda_)
        found = mmr(query, vectors, k, lambda_)
        assert [sum(pick.parts(lambda_).values()) for pick in found.picked] == pytest.approx(
            [value for _, value in wanted], abs=1e-9
        )
        assert found.order == [position for position, _ in wanted]
        assert sorted([*found.order, *(pick.position for pick in found.others)]) == list(range(count))


@pytest.mark.spec("P2")
def test_many_numbers_against_plain_loops() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        vectors = random.standard_normal((60, 384)).round(3)
        vectors[1::7] = vectors[0]  # twins
        query = random.standard_normal(384).round(3)
        wanted = in_loops([cosine(query.tolist(), row) for row in vectors.tolist()], vectors.tolist(), 20, 0.5)
        assert mmr(query, vectors, 20).order == [position for position, _ in wanted]


@pytest.mark.spec("P2")
def test_a_value_of_minus_zero_is_none() -> None:
    parts = [pick.parts(1.0)["likeness"] for pick in mmr((1, 0), VECTORS, 3, 1.0).picked]
    assert [str(part) for part in parts] == ["0.0"] * 3


def test_of_nothing_nothing_is_picked() -> None:
    assert mmr((1, 0), [], 3).order == []


@pytest.mark.spec("R1")
@pytest.mark.parametrize(("k", "lambda_"), [(0, 0.5), (-1, 0.5), (3, 1.01), (3, -0.01), (3, nan), (3, inf)])
def test_what_is_out_of_range(k: int, lambda_: float) -> None:
    for vectors in ([], VECTORS):
        with pytest.raises(OptionError):
            mmr((1, 0), vectors, k, lambda_)
    with pytest.raises(OptionError):
        Mmr(picks=k, lambda_=lambda_)


# ---------------------------------------------------------------------------------------------------------- the stage


@pytest.mark.spec("P2", "R2")
def test_the_stage_scores_by_value_and_tells_of_what_it_is_made() -> None:
    after = Mmr(picks=2, lambda_=0.3, relevance="cosine")("q", ranking(*ANGLES), CORPUS)
    assert order(after) == ["a", "e"]
    second = after.hits[1]
    assert (second.score_kind, second.marks[-1].kind_before, second.marks[-1].before) == ("mmr", "relative", 1 / 5)
    assert sum(second.marks[-1].parts.values()) == pytest.approx(second.score, abs=1e-12)
    assert second.marks[-1].note == "cosine with the query -0.1736; most like a#0, cosine -0.0872"
    assert reasons(after)["b"].startswith("not picked at lambda 0.3: value -0.4")
    assert set(reasons(after)) == {"b", "c", "d"}


@pytest.mark.spec("P2")
def test_a_score_that_is_no_cosine_is_scaled_over_the_candidates() -> None:
    # scores 1, 1/2, 1/3, 1/4, 1/5: relevance (score - 1/5) / (4/5)
    after = Mmr(picks=5, lambda_=1.0)("q", ranking(*reversed(ANGLES)), CORPUS)
    assert order(after) == ["e", "d", "c", "b", "a"]  # lambda 1: as it was ranked
    assert [hit.score for hit in after.hits] == pytest.approx([1, 0.375, 1 / 6, 0.0625, 0], abs=1e-9)


@pytest.mark.spec("P2")
def test_a_cosine_is_taken_as_it_is() -> None:
    after = Mmr(picks=3, lambda_=0.5)("q", ranking("a", "b", "c", kind="cosine"), CORPUS)
    assert after.hits[0].score == pytest.approx(0.5, abs=1e-9)  # 0.5 x 1
    wanted = {"b": 0.5 * 0.5 - 0.5 * cos(radians(3)), "c": 0.5 / 3 - 0.5 * cos(radians(2))}
    assert {one.chunk.document_id: one.score for one in after.hits[1:]} == {
        name: pytest.approx(value, abs=1e-7) for name, value in wanted.items()
    }


def test_equal_scores_are_all_the_best() -> None:
    hits = ranking("a", "b")
    same = type(hits)(tuple(type(one)(chunk=one.chunk, score=0.3, score_kind="bm25") for one in hits.hits))
    assert Mmr(picks=1, lambda_=1.0)("q", same, CORPUS).hits[0].score == 1.0


@pytest.mark.spec("P2")
def test_only_the_first_candidates_take_part() -> None:
    after = Mmr(picks=3, candidates=3, lambda_=0)("q", ranking(*ANGLES), CORPUS)
    assert order(after) == ["a", "c", "b"]
    assert reasons(after) == {
        "d": "rank 4; MMR picks from the first 3", "e": "rank 5; MMR picks from the first 3",
    }  # fmt: skip


@pytest.mark.spec("P2", "P7")
def test_by_parent_picks_until_there_are_enough_parents() -> None:
    parents = {(name, 0): chunk("doc", 0 if name in "abc" else 1) for name in ANGLES}
    corpus = FakeCorpus({(name, 0): direction(angle) for name, angle in ANGLES.items()}, (1, 0), parents)
    after = Mmr(picks=2, lambda_=1.0, by_parent=True)("q", ranking(*ANGLES), corpus)
    assert order(after) == ["a", "b", "c", "d"]


@pytest.mark.spec("P2")
def test_an_index_without_vectors_is_an_error_and_never_a_cut() -> None:
    with pytest.raises(IndexMismatch):
        Mmr(picks=1)("q", ranking("a", "b"), FakeCorpus())
    only_hits = FakeCorpus({("a", 0): (1, 0), ("b", 0): (0, 1)})
    with pytest.raises(IndexMismatch):
        Mmr(picks=1, relevance="cosine")("q", ranking("a", "b"), only_hits)
    assert order(Mmr(picks=1)("q", ranking("a", "b"), only_hits)) == ["a"]  # the scores are relevance enough
