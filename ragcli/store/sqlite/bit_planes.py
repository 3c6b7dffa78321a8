"""Vectors as one bit a number, and the rows whose bits go best with a query: candidates, never scores.

A bit tells on which side of the mean a number lies. Words of 64 bits stand in planes, word w of every row side by
side, so that one XOR and one population count go over a whole stretch of memory. The Hamming distance of such signs
follows the angle (Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002, for random
hyperplanes). It forgets how large the query's numbers are; so of the `NEAR` times as many nearest ones those are taken
whose bits go best with the query itself, Σ q_i over the bits that are set: what of q·x the signs of x can tell.

Of 131,000 static vectors of 256 numbers, 1,000 candidates by distance alone hold .978 of the best 10 and .855 of the
best 100; chosen out of 8,000 they hold .998 and .963. Does not score: `cosine` does, from the vectors themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Planes = NDArray[np.uint64]  # (words, n)

WORD = 64
BLOCK = 32_768  # rows at a time: what a pass reads and writes stays in the processor's second cache
WITHOUT_OVERFLOW = 3  # counts of up to 64 that add up in a byte
SAMPLE = 16_384  # distances that tell about where the cut will lie
NEAR = 8
UNPACKED = 512  # rows whose bits are spread to numbers at a time


def words(dimension: int) -> int:
    """How many words a row takes."""
    return -(-dimension // WORD)


def signs(rows: NDArray[np.float32], mean: NDArray[np.float32]) -> Planes:
    """The planes of rows.  # (words, n)"""
    count, dimension = rows.shape
    packed = np.zeros((count, words(dimension) * 8), np.uint8)
    bits = np.packbits(rows > mean, axis=1)
    packed[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(packed.view("<u8").T)


def likeliest(
    planes: Planes, query: NDArray[np.float32], wanted: int, positions: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """About `wanted` rows, ascending, that may have the highest cosine with `query` (dimension,).

    `positions`: the rows that count, None = all. Rows with equal bits come together or not at all.
    """
    near = nearest(planes, signs(query[None, :], np.zeros_like(query))[:, 0], NEAR * wanted, positions)
    if len(near) <= wanted:
        return near
    sums = agreement(planes, query, near)
    last = np.partition(sums, len(sums) - wanted)[len(sums) - wanted]
    slack = len(query) ** 1.5 * 2.0**-24  # of a sum in float32 that may depend on where a row lies
    kept: NDArray[np.int64] = near[sums >= last - slack]
    return kept


def agreement(planes: Planes, query: NDArray[np.float32], positions: NDArray[np.int64]) -> NDArray[np.float32]:
    """The sum of the query's numbers where a row's bit is set.  # (n,)"""
    packed = np.ascontiguousarray(planes[:, positions].T).view(np.uint8)
    found = np.empty(len(positions), np.float32)
    for start in range(0, len(positions), UNPACKED):
        bits = np.unpackbits(packed[start : start + UNPACKED], axis=1, count=len(query))
        np.matmul(bits.astype(np.float32), query, out=found[start : start + UNPACKED])
    return found


def nearest(
    planes: Planes, bits: NDArray[np.uint64], wanted: int, positions: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The `wanted` rows nearest to `bits` (words,), and all that are as near as the last; of `positions` if given."""
    distances = hamming(planes, bits)
    if positions is not None:
        distances = distances[positions]
    found = _lowest(distances, wanted)
    return found if positions is None else positions[found]


def hamming(planes: Planes, bits: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """How many bits of each row differ.  # (n,)"""
    count = planes.shape[1]
    total = np.zeros(count, np.uint16)
    differ = np.empty(BLOCK, np.uint64)
    ones, few = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint8)
    for start in range(0, count, BLOCK):
        stretch = planes[:, start : start + BLOCK]
        size = stretch.shape[1]
        _add(total[start : start + size], stretch, bits, (differ[:size], ones[:size], few[:size]))
    return total


def _add(
    total: NDArray[np.uint16],
    stretch: Planes,
    bits: NDArray[np.uint64],
    room: tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint8]],
) -> None:
    """Bytes are added up as bytes as long as they can be: that is four times as fast as into 16 bits."""
    differ, ones, few = room
    for word, plane in enumerate(stretch):
        np.bitwise_xor(plane, bits[word], out=differ)
        if word % WITHOUT_OVERFLOW == 0:
            np.bitwise_count(differ, out=few)
        else:
            np.bitwise_count(differ, out=ones)
            np.add(few, ones, out=few)
        if word % WITHOUT_OVERFLOW == WITHOUT_OVERFLOW - 1 or word == len(stretch) - 1:
            np.add(total, few, out=total)


def _lowest(distances: NDArray[np.uint16], wanted: int) -> NDArray[np.int64]:
    """Where the `wanted` lowest distances are, and all equal to the last of them.

    A sample tells a distance that surely lets enough pass; only what passes is looked at closely.
    """
    count = len(distances)
    if wanted >= count:
        return np.arange(count)
    sample = np.sort(distances[:: max(1, count // SAMPLE)])
    at = 2 * wanted * len(sample) // count + 8
    while at < len(sample):
        passed = np.flatnonzero(distances <= sample[at])
        if len(passed) >= wanted:
            break
        at *= 2
    else:
        passed = np.arange(count)
    near = distances[passed]
    lowest: NDArray[np.int64] = passed[near <= np.partition(near, wanted - 1)[wanted - 1]]
    return lowest
