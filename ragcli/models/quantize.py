"""Weights as 8-bit integers, for matrix products whose other side is quantised as it comes (dynamic quantisation).

Symmetric, one scale a column of a matrix or a row of a table. Two measures keep the loss small:

- CPUs without VNNI add two neighbouring products of an unsigned and a signed byte in 16 bits, and saturate. Columns are
  scaled so that this can't happen (`columns`), which costs less than giving every weight one bit less, and every CPU
  computes the same integers. The alternative, unsigned weights, takes three times as long on CPUs that have VNNI.
- What a layer norm gives is of very unequal size from channel to channel, but has one scale. The sizes are evened out
  by factors that go into the weights (SmoothQuant, Xiao et al. 2023), guessed from the layer norm's own parameters
  rather than from sample texts (`evening`).

Does not write graphs (`bert` does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Bytes = NDArray[np.int8]

LARGEST = 127
LARGEST_PAIR = 128  # 255 · 128 < 2^15
SPREAD = 3.0  # a normalised channel is within three standard deviations, nearly always
MIGRATION = 0.7  # how much of the unevenness goes into the weights; .5 and .9 were measured to be worse


def columns(weight: Matrix) -> tuple[Bytes, Matrix]:
    """`weight` (inputs, outputs) as integers and a scale a column: weight ≈ integers · scales.

    No two weights of a column that are multiplied together (inputs 2i and 2i + 1) add up to more than 128.
    """
    import numpy as np

    even = np.pad(weight, ((0, weight.shape[0] % 2), (0, 0)))
    pairs = np.abs(even[0::2] + even[1::2]).max(axis=0)
    # rounding may add 1/2 to each of the two
    scales = np.maximum(np.abs(weight).max(axis=0) / LARGEST, pairs / (LARGEST_PAIR - 1)).astype(np.float32)
    scales[scales == 0] = 1.0
    return _rounded(weight / scales), scales


def rows(table: Matrix) -> tuple[Bytes, Matrix]:
    """`table` (n, width) as integers and a scale a row, (n, 1)."""
    import numpy as np

    scales = (np.abs(table).max(axis=1, keepdims=True) / LARGEST).astype(np.float32)
    scales[scales == 0] = 1.0
    return _rounded(table / scales), scales


def evening(weight: Matrix, gain: Matrix, shift: Matrix) -> Matrix:
    """What to divide each input of `weight` by, (inputs,), when it is `gain · z + shift` with z of variance 1.

    The weight's rows are to be multiplied with it. Their geometric mean is 1.
    """
    import numpy as np

    size = SPREAD * np.abs(gain) + np.abs(shift)
    against = np.abs(weight).max(axis=1)
    log = MIGRATION * np.log(np.maximum(size, 1e-6)) - (1 - MIGRATION) * np.log(np.maximum(against, 1e-6))
    factors: Matrix = np.exp(log - log.mean()).astype(np.float32)
    return factors


def _rounded(values: Matrix) -> Bytes:
    import numpy as np

    return np.clip(np.rint(values), -LARGEST, LARGEST).astype(np.int8)
