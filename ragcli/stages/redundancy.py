"""The redundancy filter: what says the same as a better hit is dropped (spec P1).

Greedy in the order of ranks: a hit stays when its cosine with every hit that stays before it is below the threshold. So
a hit goes only for its likeness to one that is shown, never to one that went itself. Order and scores stay.
Compares all pairs by one matrix product: for the candidates of a query, not for a corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from ragcli.errors import OptionError
from ragcli.stages import cosines
from ragcli.types import Corpus, Drop, Hit, Ranking

NAME = "redundancy"


class Twin(msgspec.Struct, frozen=True):
    """The kept one that a dropped one is most like: its position, and their cosine."""

    position: int
    cosine: float


class Kept(msgspec.Struct, frozen=True):
    """Positions that stay, ascending; the others with their twins; those that are zeros, and so like nothing."""

    positions: tuple[int, ...]
    dropped: Mapping[int, Twin]
    zeros: tuple[int, ...] = ()


def redundancy_filter(vectors: Any, threshold: float = 0.95) -> Kept:
    """Which of these stay: `vectors`, (n, dimension), in the order of ranks, of any length.

    `threshold`: -1 to 1; a cosine of it or more is too much. Of twins that are equally alike the better rank is named.
    Raises: OptionError for the threshold; ValueError for what is no matrix of finite numbers.
    """
    import numpy as np

    if not (isfinite(threshold) and -1 <= threshold <= 1):
        raise OptionError("retrieval.redundancy_threshold", threshold, "-1 to 1")
    rows = cosines.unit_rows(vectors)
    is_zero: list[bool] = np.logical_not(rows.any(axis=1)).tolist()
    return _kept(cosines.with_each_other(rows).tolist(), is_zero, threshold)


def _kept(alike: list[list[float]], is_zero: list[bool], threshold: float) -> Kept:
    kept: list[int] = []  # what can be compared
    stays: list[int] = []
    dropped: dict[int, Twin] = {}
    for position, row in enumerate(alike):
        nearest = max(kept, key=row.__getitem__, default=None)  # the first of several
        if nearest is not None and not is_zero[position] and row[nearest] >= threshold:
            dropped[position] = Twin(nearest, row[nearest])
            continue
        stays.append(position)
        if not is_zero[position]:
            kept.append(position)
    return Kept(tuple(stays), dropped, tuple(at for at, zero in enumerate(is_zero) if zero))


class Redundancy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Drops the hits whose cosine with a better hit is `threshold` (-1 to 1) or more.

    Raises: OptionError for a threshold out of range.
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        redundancy_filter((), self.threshold)

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The ranking without them. Raises: as `Corpus.vectors`."""
        hits = ranking.hits
        if not hits:
            return ranking
        found = redundancy_filter(corpus.vectors(hits), self.threshold)
        dropped = tuple(Drop(hits[at], NAME, self._reason(hits, twin)) for at, twin in found.dropped.items())
        said = (_uncompared(len(found.zeros)),) if found.zeros else ()
        return Ranking(tuple(hits[at] for at in found.positions), ranking.dropped + dropped, ranking.warnings + said)

    def _reason(self, hits: Sequence[Hit], twin: Twin) -> str:
        chunk = hits[twin.position].chunk
        who = f"{chunk.document_id}#{chunk.index} (rank {twin.position + 1})"
        return f"cosine {twin.cosine:.4f} with {who}, which is kept; threshold {self.threshold:g}"


def _uncompared(count: int) -> str:
    return (
        f"{count} hits without a vector were kept: the redundancy filter can't compare them"
        if count > 1
        else ("1 hit without a vector was kept: the redundancy filter can't compare it")
    )
