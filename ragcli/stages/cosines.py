"""Cosines that stages decide by: of float64, rounded to nine decimals.

The last bits of a matrix product depend on the machine and on where a row stands; stored vectors are float16, and say
nothing beyond the fourth decimal of a cosine. Rounded, equal vectors tie, and the better rank wins on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DECIMALS = 9
SMALLEST = 1e-100  # a length above it was not made of squares that are too small for a float


def unit_rows(vectors: Any) -> NDArray[np.float64]:
    """The rows at length 1, (n, dimension); a row of zeros stays one.

    Raises: ValueError: they are no matrix, or hold a number that is not finite.
    """
    import numpy as np

    rows = np.asarray(vectors, np.float64)
    if rows.shape == (0,):
        rows = rows.reshape(0, 0)
    if rows.ndim != 2:
        raise ValueError(f"vectors of shape {rows.shape}: one row a hit is wanted")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not (np.isfinite(lengths).all() and (lengths > SMALLEST).all()):
        rows, lengths = _scaled(rows)
    found: NDArray[np.float64] = rows / lengths[:, None]
    return found


def _scaled(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows brought near 1, and their lengths: squares of very small or large numbers are no numbers. Of zeros 1."""
    import numpy as np

    if not np.isfinite(rows).all():
        raise ValueError("a vector holds a number that is not finite")
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest == 0, 1, largest)
    lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return scaled, np.where(lengths == 0, 1, lengths)


def with_row(rows: NDArray[np.float64], row: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cosine of every row with `row`, (n,): one matrix-vector product. All of them have length 1 or 0."""
    import numpy as np

    found: NDArray[np.float64] = np.round(rows @ row, DECIMALS) + 0.0  # no -0.0
    return found


def with_each_other(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cosine of every row with every other, (n, n): one matrix product. All of them have length 1 or 0."""
    import numpy as np

    found: NDArray[np.float64] = np.round(rows @ rows.T, DECIMALS) + 0.0
    return found
