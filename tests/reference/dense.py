"""Cosines by plain loops over whole numbers (spec R3, R4): what the index's scores are tested against, bit for bit.

A stored number is a float16, so a whole multiple of 2^-24; a unit query's number is rounded to one of 2^-36. Python's
whole numbers don't round, so the sums have no order::

    cosine(q, x) = (Σ q_i·x_i · 2^-60) / sqrt(Σ x_i² · 2^-48)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import fsum, sqrt

Vector = Sequence[float]


def unit(query: Vector) -> list[float]:
    """The query, of length 1."""
    length = sqrt(fsum(float(value) * float(value) for value in query))
    return [float(value) / length for value in query]


def cosine(query: Vector, stored: Vector) -> float:
    """The cosine of a query and a stored vector of float16 numbers; neither is all zeros."""
    whole = [int(float(value) * 2**24) for value in stored]
    dot = sum(round(one * 2.0**36) * other for one, other in zip(unit(query), whole, strict=True))
    return (float(dot) / 2.0**60) / sqrt(float(sum(value * value for value in whole)) / 2.0**48)


def ranking(
    corpus: Mapping[int, Vector],
    names: Mapping[int, tuple[str, int]],
    query: Vector,
    k: int,
    *,
    allowed: Collection[int] | None = None,
    floor: float = -2.0,
) -> list[tuple[int, float]]:
    """The best k of the allowed chunks and their scores, best first; equal scores by document id and chunk index."""
    found = [(chunk, cosine(query, vector)) for chunk, vector in corpus.items() if allowed is None or chunk in allowed]
    kept = [(chunk, score) for chunk, score in found if score >= floor]
    return sorted(kept, key=lambda pair: (-pair[1], *names[pair[0]]))[:k]
