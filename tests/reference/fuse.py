"""Fusion by plain loops (spec R5, R6): what `ragcli.fuse` is tested against. Clear, not fast; no cleverness.

::

    rrf        Σ over the arms that ranked the chunk:  w / (k + rank)
    relative   Σ over the arms that know its score:    w · (s - min) / (max - min)
    zscore     Σ over the arms that know its score:    w · (s - mean) / deviation

min, max, mean and deviation (of the population) are those of the arm's scores over the union of what all arms ranked.
An arm that ranked nothing adds nothing. Where an arm's scores are all equal, the fraction is 1 (relative) or 0
(zscore).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt

ReferenceArm = tuple[Mapping[int, int], Mapping[int, float], float]  # ranks, scores, weight


def rrf(arms: Sequence[ReferenceArm], k: int) -> dict[int, float]:
    """The RRF score of every ranked chunk."""
    found: dict[int, float] = {}
    for chunk in union(arms):
        score = Fraction(0)
        for ranks, _, weight in arms:
            if chunk in ranks:
                score += Fraction(weight) / (k + ranks[chunk])
        found[chunk] = float(score)
    return found


def relative(arms: Sequence[ReferenceArm]) -> dict[int, float]:
    """The weighted sum of min-max scaled scores, of every ranked chunk."""
    found = {}
    for chunk in union(arms):
        score = Fraction(0)
        for arm in arms:
            known = _known(arm, arms)
            if chunk not in known:
                continue
            low, high = min(known.values()), max(known.values())
            scaled = (known[chunk] - low) / (high - low) if high > low else Fraction(1)
            score += Fraction(arm[2]) * scaled
        found[chunk] = float(score)
    return found


def zscore(arms: Sequence[ReferenceArm]) -> dict[int, float]:
    """The weighted sum of standardised scores, of every ranked chunk."""
    found = {}
    for chunk in union(arms):
        score = 0.0
        for arm in arms:
            known = _known(arm, arms)
            if chunk not in known:
                continue
            mean = sum(known.values()) / len(known)
            variance = sum((value - mean) ** 2 for value in known.values()) / len(known)
            if variance:
                score += arm[2] * float(known[chunk] - mean) / sqrt(variance)
        found[chunk] = score
    return found


def union(arms: Sequence[ReferenceArm]) -> list[int]:
    """Every chunk that an arm ranked."""
    return sorted({chunk for ranks, _, _ in arms for chunk in ranks})


def _known(arm: ReferenceArm, arms: Sequence[ReferenceArm]) -> dict[int, Fraction]:
    ranks, scores, _ = arm
    return {chunk: Fraction(scores[chunk]) for chunk in union(arms) if chunk in scores} if ranks else {}
