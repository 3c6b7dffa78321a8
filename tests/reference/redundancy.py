"""The redundancy filter in plain loops, as spec P1 states it."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two vectors; 0 where one of them has no length. To nine decimals."""
    lengths = sqrt(fsum(x * x for x in one)) * sqrt(fsum(x * x for x in other))
    if lengths == 0:
        return 0.0
    return round(fsum(x * y for x, y in zip(one, other, strict=True)) / lengths, 9)


def redundancy(vectors: Sequence[Sequence[float]], threshold: float) -> tuple[list[int], dict[int, tuple[int, float]]]:
    """The positions that stay; of the others the kept one that each is most like, and their cosine."""
    kept: list[int] = []
    dropped: dict[int, tuple[int, float]] = {}
    for position, vector in enumerate(vectors):
        best: tuple[int, float] | None = None
        for earlier in kept:
            if not any(vectors[earlier]) or not any(vector):
                continue  # no vector is like nothing
            found = cosine(vector, vectors[earlier])
            if best is None or found > best[1]:
                best = (earlier, found)
        if best is None or best[1] < threshold:
            kept.append(position)
        else:
            dropped[position] = best
    return kept, dropped
