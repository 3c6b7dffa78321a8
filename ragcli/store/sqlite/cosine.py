"""Cosines between a query and float16 vectors: a fast float32 one with a known error, and the one that is shown.

A score that is shown must not depend on where a vector lies among others; sums in floating point do (BLAS adds up
differently by position, numpy by shape). So it is computed in whole numbers: float16 is a multiple of 2^-24, the unit
query is rounded to one of 2^-36, and their products add up in 64 bits without any rounding, in any order. The query's
rounding moves a cosine by less than 1e-9. Decides nothing about which vectors to look at.
"""

from __future__ import annotations

from math import fsum, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Halves = NDArray[np.float16]  # (n, dimension)

ROW_BITS = 24
QUERY_BITS = 36
BLOCK_BYTES = 1 << 19  # of float32 at a time: it stays in the processor's second cache
_RAISE = np.float32(2.0**112)  # 127 - 15: the difference of the exponents' biases
_KEPT = -0x70002000  # sign, exponent and fraction of a float16, moved to their places in a float32


class Query:
    """A query, of length 1. `unit` is None for a vector of length 0, or with numbers that are not finite."""

    def __init__(self, vector: NDArray[np.float32]) -> None:
        values = vector.astype(np.float64)
        length = sqrt(fsum(value * value for value in values.tolist()))
        self.unit = values / length if 0.0 < length < float("inf") else None  # (dimension,)

    @property
    def singles(self) -> NDArray[np.float32]:
        """The query in float32.  # (dimension,)"""
        assert self.unit is not None
        return self.unit.astype(np.float32)

    @property
    def fixed(self) -> NDArray[np.int64]:
        """The query in steps of 2^-36.  # (dimension,)"""
        assert self.unit is not None
        return np.rint(self.unit * 2.0**QUERY_BITS).astype(np.int64)


def error(dimension: int) -> float:
    """The most by which `approximate` can be off: two float32 sums of `dimension` products, and four roundings."""
    return (2 * dimension + 8) * 2.0**-24


def approximate(
    rows: Halves, norms: NDArray[np.float32], query: Query, positions: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Cosines of rows, or of those at `positions`, in float32.  # (n,)

    The rows' exponents are left too low by 112, which the query makes good.
    """
    count = len(rows) if positions is None else len(positions)
    raised = query.singles * _RAISE
    found = np.empty(count, np.float32)
    words = rows.view("<i2")
    room = np.empty((_block(rows.shape[1]), rows.shape[1]), np.int32)
    for start, end in _blocks(count, rows.shape[1]):
        wide = room[: end - start]
        np.copyto(wide, words[start:end] if positions is None else words[positions[start:end]])
        np.matmul(_moved(wide), raised, out=found[start:end])
    found /= norms if positions is None else norms[positions]
    return found


def exact(rows: Halves, query: Query) -> NDArray[np.float64]:
    """Cosines of rows, the same bits for the same vector wherever it stands.  # (n,)"""
    found = np.empty(len(rows), np.float64)
    fixed = query.fixed
    for start, end in _blocks(len(rows), rows.shape[1]):
        whole = _whole(rows[start:end])
        dots = (whole * fixed).sum(axis=1).astype(np.float64) * 2.0 ** -(ROW_BITS + QUERY_BITS)
        found[start:end] = dots / _lengths(whole)
    return found


def unit_rows(rows: Halves) -> NDArray[np.float32]:
    """The rows, each divided by its length.  # (n, dimension)"""
    found = np.empty(rows.shape, np.float32)
    for start, end in _blocks(len(rows), rows.shape[1]):
        found[start:end] = rows[start:end].astype(np.float64) / _lengths(_whole(rows[start:end]))[:, None]
    return found


def norms(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The lengths of rows, good enough for `approximate`.  # (n,)"""
    squares: NDArray[np.float32] = np.einsum("ij,ij->i", rows, rows)
    return np.sqrt(squares)


def widened(rows: Halves) -> NDArray[np.float32]:
    """The rows in float32, to the bit.  # (n, dimension)"""
    wide = _moved(rows.view("<i2").astype(np.int32))
    wide *= _RAISE
    return wide


def _moved(words: NDArray[np.int32]) -> NDArray[np.float32]:
    """The bits of float16 numbers, each at its place in a float32: 2^-112 of what it should be. In place.

    Three passes of whole-number work: numpy's own conversion takes three times as long.
    """
    np.left_shift(words, 13, out=words)
    np.bitwise_and(words, _KEPT, out=words)
    return words.view(np.float32)


def _whole(rows: Halves) -> NDArray[np.int64]:
    scaled: NDArray[np.float32] = widened(rows) * np.float32(2.0**ROW_BITS)
    return scaled.astype(np.int64)


def _lengths(whole: NDArray[np.int64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = (whole * whole).sum(axis=1).astype(np.float64)
    return np.sqrt(squares * 2.0 ** -(2 * ROW_BITS))


def _block(dimension: int) -> int:
    return max(1, BLOCK_BYTES // (4 * dimension))


def _blocks(count: int, dimension: int) -> Iterator[tuple[int, int]]:
    size = _block(dimension)
    return ((start, min(start + size, count)) for start in range(0, count, size))
