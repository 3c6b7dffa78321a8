"""What says the same as a better hit goes, and nothing else (spec P1)."""

from __future__ import annotations

from math import cos, inf, nan, radians, sin
from random import Random

import numpy as np
import pytest

from ragcli.errors import IndexMismatch, OptionError
from ragcli.stages.redundancy import Redundancy, redundancy_filter
from tests.reference.redundancy import redundancy
from tests.stages.corpus import FakeCorpus, order, ranking, reasons


def direction(degrees: float) -> tuple[float, float]:
    return cos(radians(degrees)), sin(radians(degrees))


@pytest.mark.spec("P1", "P11")
def test_greedy_in_the_order_of_ranks() -> None:
    # 10 degrees is like 0 (.985), 20 is not (.940), 30 is like 20 (.985) but not like 0
    found = redundancy_filter([direction(angle) for angle in (0, 10, 20, 30)], 0.95)
    assert found.positions == (0, 2)
    assert {at: twin.position for at, twin in found.dropped.items()} == {1: 0, 3: 2}
    assert [twin.cosine for twin in found.dropped.values()] == pytest.approx([cos(radians(10))] * 2, abs=1e-9)


@pytest.mark.spec("P1")
def test_likeness_to_a_dropped_one_drops_nothing() -> None:
    # 18 is like 10 (.990), which goes because of 0 (.985); with 0 it is .951 apart: at .96 it stays
    assert redundancy_filter([direction(angle) for angle in (0, 10, 18)], 0.96).positions == (0, 2)


@pytest.mark.spec("P1")
def test_the_threshold_itself_is_too_much_and_equal_vectors_have_cosine_one() -> None:
    same = np.random.default_rng(0).standard_normal(384)
    assert redundancy_filter([same, 3 * same], 1.0).positions == (0,)
    assert redundancy_filter([(1, 0), (0, 1), (-1, 0)], 0.0).positions == (0, 2)  # cosine 0 is not below 0
    assert redundancy_filter([(1, 0), (-1, 0)], -1.0).positions == (0,)


@pytest.mark.spec("P1")
def test_of_equally_alike_twins_the_better_rank_is_named() -> None:
    found = redundancy_filter([direction(0), direction(60), direction(30)], 0.8)
    assert found.dropped[2].position == 0


def test_a_vector_of_zeros_is_like_nothing_and_stays() -> None:
    found = redundancy_filter([(0, 0), (1, 0), (0, 0), (1, 0)], -1.0)
    assert found.positions == (0, 1, 2)
    assert found.zeros == (0, 2)


@pytest.mark.parametrize("vectors", [(), [], np.zeros((0, 384))])
def test_of_nothing_nothing_stays(vectors: object) -> None:
    assert redundancy_filter(vectors).positions == ()


@pytest.mark.spec("P1", "P11")
def test_a_thousand_random_inputs_against_plain_loops() -> None:
    random = Random(1)
    for _ in range(1000):
        count, dimension = random.randint(1, 12), random.randint(1, 5)
        pool = [[random.choice([-1.0, 0.0, 0.5, 1.0, 2.0]) for _ in range(dimension)] for _ in range(6)]
        vectors = [random.choice(pool) for _ in range(count)]
        threshold = random.choice([-1.0, 0.0, 0.3, 0.5, 0.9, 0.95, 1.0])
        kept, dropped = redundancy(vectors, threshold)
        found = redundancy_filter(vectors, threshold)
        assert list(found.positions) == kept
        assert {at: twin.position for at, twin in found.dropped.items()} == {
            at: twin for at, (twin, _) in dropped.items()
        }
        assert [twin.cosine for twin in found.dropped.values()] == pytest.approx(
            [value for _, value in dropped.values()], abs=1e-9
        )


@pytest.mark.spec("P1")
def test_the_stage_keeps_order_and_scores_and_names_the_twin() -> None:
    vectors = {(name, 0): direction(angle) for name, angle in {"a": 0, "b": 10, "c": 50}.items()}
    before = ranking("a", "b", "c")
    after = Redundancy(0.95)("q", before, FakeCorpus(vectors))
    assert after.hits == (before.hits[0], before.hits[2])
    assert reasons(after) == {"b": "cosine 0.9848 with a#0 (rank 1), which is kept; threshold 0.95"}


@pytest.mark.spec("R8")
def test_the_stage_says_what_it_could_not_compare() -> None:
    vectors = {("a", 0): (1, 0), ("b", 0): (0, 0), ("c", 0): (1, 0)}
    after = Redundancy(0.95)("q", ranking("a", "b", "c"), FakeCorpus(vectors))
    assert order(after) == ["a", "b"]
    assert after.warnings == ("1 hit without a vector was kept: the redundancy filter can't compare it",)


@pytest.mark.spec("P1")
def test_an_index_without_vectors_is_an_error() -> None:
    with pytest.raises(IndexMismatch):
        Redundancy()("q", ranking("a"), FakeCorpus())


@pytest.mark.spec("R1")
@pytest.mark.parametrize("threshold", [-1.001, 1.001, nan, inf])
def test_a_threshold_out_of_range(threshold: float) -> None:
    for make in (Redundancy, lambda value: redundancy_filter([(1, 0)], value)):
        with pytest.raises(OptionError, match="redundancy_threshold"):
            make(threshold)


@pytest.mark.parametrize("vectors", [[1.0, 2.0], [[nan, 1.0]], [[inf, 1.0]]])
def test_what_is_no_matrix_of_numbers(vectors: object) -> None:
    with pytest.raises(ValueError, match="vector"):
        redundancy_filter(vectors)


def test_very_small_and_very_large_numbers_have_a_direction() -> None:
    assert redundancy_filter([(1e-300, 0), (1e300, 0), (0, 1e-300)], 0.95).positions == (0, 2)
