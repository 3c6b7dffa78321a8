"""Weights as bytes: how far off they may be, and that no CPU saturates on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragcli.models.quantize import columns, evening, rows

MATRICES = arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=st.floats(-8, 8, width=32))


@pytest.mark.spec("M4")
@given(MATRICES)
def test_a_weight_is_off_by_half_a_step_at_most(weight: np.ndarray) -> None:
    integers, scales = columns(weight)
    assert integers.dtype == np.int8
    assert np.all(np.abs(integers * scales - weight) <= scales * 0.5001)


@pytest.mark.spec("M4")
@given(MATRICES)
def test_two_neighbours_times_the_largest_bytes_fit_into_16_bits(weight: np.ndarray) -> None:
    integers = columns(weight)[0].astype(int)
    for column in integers.T:
        for first in range(0, len(column), 2):
            pair = column[first : first + 2]
            # the unsigned bytes that make the sum largest and smallest
            assert 255 * pair[pair > 0].sum() <= 32767
            assert 255 * pair[pair < 0].sum() >= -32768


def test_a_column_of_one_large_weight_loses_nothing_to_its_pair() -> None:
    weight = np.array([[1.0], [0.0], [-0.5], [0.25]], np.float32)
    integers, scales = columns(weight)
    assert scales[0] == pytest.approx(1 / 127)
    assert integers[:, 0].tolist() == [127, 0, -64, 32]


def test_a_table_has_a_scale_a_row() -> None:
    integers, scales = rows(np.array([[2.0, -1.0], [0.0, 0.0], [0.001, 0.002]], np.float32))
    assert integers.tolist() == [[127, -64], [0, 0], [64, 127]]
    assert scales[:, 0].tolist() == pytest.approx([2 / 127, 1.0, 0.002 / 127])


def test_evening_makes_large_channels_smaller_and_changes_no_product() -> None:
    random = np.random.default_rng(3)
    weight = random.standard_normal((6, 4)).astype(np.float32)
    gain, shift = np.array([1, 1, 1, 20, 1, 1], np.float32), np.array([0, 0, 0, 0, 9, 0], np.float32)
    factors = evening(weight, gain, shift)
    value = random.standard_normal((50, 6)) * gain + shift
    np.testing.assert_allclose((value / factors) @ (weight * factors[:, None]), value @ weight, rtol=1e-4, atol=1e-4)
    assert np.prod(factors) == pytest.approx(1.0, rel=1e-4)

    def spread(values: np.ndarray) -> float:
        largest = np.abs(values).max(axis=0)
        return float(largest.max() / largest.min())

    assert spread(value / factors) < spread(value) / 3
