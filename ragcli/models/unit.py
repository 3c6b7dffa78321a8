"""A vector brought to length 1, or why it has none: every embedder's last step. Knows no model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def unit(vector: NDArray[np.floating]) -> NDArray[np.float32] | str:
    """The vector at length 1, computed in its own precision; or what it is instead: "a vector of zeros" …"""
    import numpy as np

    largest = np.abs(vector).max(initial=0)
    if not np.isfinite(largest):  # NaN is the largest of all
        return "a vector with NaN or infinity"
    if not largest:
        return "a vector of zeros"
    scaled = vector / largest  # so that no square overflows or vanishes
    at_length_1: NDArray[np.float32] = (scaled / np.sqrt(scaled @ scaled)).astype(np.float32, copy=False)
    return at_length_1
