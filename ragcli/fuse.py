"""Several arms' candidates into one ranking (spec R5, R6). Pure: ids, ranks and scores in, ids and scores out.

A score is the weighted sum of what each arm adds. `relative` scales an arm's true scores over the candidates to 0..1
(min-max, then CombSUM: Fox & Shaw, Combination of Multiple Searches, 1994; Lee, Analyses of Multiple Evidence
Combination, 1997); `zscore` to mean 0 and deviation 1 over the candidates; `rrf` takes `1 / (k + rank)` and no score
(Cormack, Clarke & Buettcher, Reciprocal Rank Fusion outperforms Condorcet, 2009). A candidate is a chunk, known by its
id: the same text in two documents is two candidates, a chunk found by two arms is one.

Runs no arm, looks up no score, cuts nothing, and compares no fused score with a threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt

import msgspec

from ragcli.options import FusionSettings
from ragcli.types import ArmScore

STAGE = "fusion"  # what its step is called in a trace


class Arm(msgspec.Struct, frozen=True):
    """What one arm found. `ranked`: chunk id to rank, from 1, of those that it put among its best.

    `scores`: chunk id to the arm's true score, finite, of every candidate that the arm knows, whoever found it.
    """

    name: str
    ranked: Mapping[int, int]
    scores: Mapping[int, float]


class Fused(msgspec.Struct, frozen=True):
    """A candidate with its fused score. The `part`s of `arms` add up to `score`.

    `normalized`: the RRF score as a share of that of a chunk ranked first by every arm, 0 to 1; None of other methods.
    """

    chunk: int
    score: float
    normalized: float | None
    arms: Mapping[str, ArmScore]


def fuse(arms: Sequence[Arm], settings: FusionSettings, names: Mapping[int, tuple[str, int]]) -> list[Fused]:
    """Every chunk that an arm ranked, best first; equal scores by name.

    `names`: chunk id to (document id, chunk index), of every ranked chunk. An arm of weight 0 is left out. What an arm
    adds to a chunk whose score it does not know is 0: as much as to the worst (`relative`), or the mean (`zscore`).
    An arm that ranked nothing adds 0 to all.
    """
    active = [arm for arm in arms if settings.weight(arm.name) > 0]
    candidates = sorted({chunk for arm in active for chunk in arm.ranked})
    parts = {arm.name: _parts(arm, candidates, settings) for arm in active}
    best = fsum(settings.weight(arm.name) / (settings.rrf_k + 1) for arm in active)
    fused = [_fused(chunk, active, parts, best, settings) for chunk in candidates]
    return sorted(fused, key=lambda one: (-one.score, names[one.chunk]))


def trace_options(arms: Iterable[str], settings: FusionSettings) -> dict[str, object]:
    """What a fusion of these arms is recorded with (`Step.options`): method, weights, and of RRF its own options."""
    weights = {arm: settings.weight(arm) for arm in arms}
    own = {"k": settings.rrf_k, "normalize": settings.normalize} if settings.method == "rrf" else {}
    return {"method": settings.method, "weights": weights, **own}


def _fused(
    chunk: int, arms: Sequence[Arm], parts: Mapping[str, Mapping[int, float]], best: float, settings: FusionSettings
) -> Fused:
    added = {arm.name: parts[arm.name].get(chunk, 0.0) for arm in arms}
    score = fsum(added.values())
    normalized = score / best if settings.method == "rrf" else None
    if settings.normalize and normalized is not None:
        added, score = {name: part / best for name, part in added.items()}, normalized
    shown = {arm.name: ArmScore(arm.ranked.get(chunk), arm.scores.get(chunk), added[arm.name]) for arm in arms}
    return Fused(chunk, score, normalized, shown)


def _parts(arm: Arm, candidates: Sequence[int], settings: FusionSettings) -> dict[int, float]:
    """What the arm adds to each candidate; to one that is not in it, nothing."""
    weight = settings.weight(arm.name)
    if settings.method == "rrf":
        return {chunk: weight / (settings.rrf_k + rank) for chunk, rank in arm.ranked.items()}
    scores = {chunk: arm.scores[chunk] for chunk in candidates if chunk in arm.scores} if arm.ranked else {}
    scaled = _relative(scores) if settings.method == "relative" else _zscore(scores)
    return {chunk: weight * value for chunk, value in scaled.items()}


def _relative(scores: Mapping[int, float]) -> dict[int, float]:
    """The scores on a scale from 0 (the lowest) to 1 (the highest). Where all are equal, all are the best there is."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if low == high:
        return dict.fromkeys(scores, 1.0)
    return {chunk: (score - low) / (high - low) for chunk, score in scores.items()}


def _zscore(scores: Mapping[int, float]) -> dict[int, float]:
    """The scores in standard deviations (of the population) from their mean; 0 where all are equal."""
    if len(set(scores.values())) < 2:  # the mean of equal numbers may be rounded, and so no longer equal
        return dict.fromkeys(scores, 0.0)
    mean = fsum(scores.values()) / len(scores)
    deviation = sqrt(fsum((score - mean) ** 2 for score in scores.values()) / len(scores))
    if deviation == 0:  # squares too small for a float
        return dict.fromkeys(scores, 0.0)
    return {chunk: (score - mean) / deviation for chunk, score in scores.items()}
