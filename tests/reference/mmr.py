"""Maximal Marginal Relevance in plain loops, as spec P2 states it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.redundancy import cosine


def mmr(
    relevance: Sequence[float], vectors: Sequence[Sequence[float]], k: int, lambda_: float
) -> list[tuple[int, float]]:
    """(position, value when it was picked), in the order of the picks; equal values: the earlier position."""
    picked: list[tuple[int, float]] = []
    left = list(range(len(vectors)))
    while left and len(picked) < k:
        best: tuple[int, float] | None = None
        for position in left:
            if picked:
                likeness = max(cosine(vectors[position], vectors[earlier]) for earlier, _ in picked)
                value = lambda_ * relevance[position] - (1 - lambda_) * likeness
                rank = value
            else:
                value, rank = lambda_ * relevance[position], relevance[position]
            if best is None or rank > best[1]:
                best, worth = (position, rank), value
        assert best is not None
        picked.append((best[0], worth))
        left.remove(best[0])
    return picked
