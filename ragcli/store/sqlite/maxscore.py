"""MaxScore in the standard library: for the many queries whose lists are short."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import nlargest

from ragcli.store.sqlite.layout import BLOCK
from ragcli.store.sqlite.scoring import FEW, Admission, Entries, Lists, Pace, Search, Term

Bounds = dict[int, float]  # chunk id -> the most that it can score with the terms read so far


def candidates(ordered: Sequence[Term], search: Search, budget: int) -> list[tuple[float, int]] | None:
    """(bound, chunk id) of every chunk that may be among the best k; terms in descending order of bound.

    None when more than `budget` postings would have to be read: too much for this way.
    """
    left = _suffix_sums([term.bound for term in ordered])
    filters = _Filters(search.admission)
    bounds: Bounds = {}
    floor, pace = 0.0, Pace()  # the k-th best true score so far, and when to look for a better
    for at, term in enumerate(ordered):
        if floor > left[at]:  # a chunk with none of the terms read so far can't get in
            return _pruned(ordered[at:], left[at:], search.lists, bounds, floor)
        budget -= term.df
        if budget < 0:
            return None
        for part in term.parts:
            _add(bounds, search.lists[part], part.step)
        filters.apply(bounds)
        if pace.is_due(left[at + 1]):
            floor = max(floor, _floor(bounds, left[at + 1], search))
    return [(bound, chunk) for chunk, bound in bounds.items() if bound >= floor]


def _suffix_sums(bounds: Sequence[float]) -> list[float]:
    sums = [0.0]
    for bound in reversed(bounds):
        sums.append(sums[-1] + bound)
    return sums[::-1]


class _Filters:
    """Takes out of the bounds what may not be found."""

    def __init__(self, admission: Admission) -> None:
        self._dead = frozenset(block * BLOCK + low for block, lows in admission.dead.items() for low in lows)
        self._allowed: Collection[int] | None = None
        if admission.allowed is not None:
            self._allowed = {chunk for first, last in admission.allowed for chunk in range(first, last + 1)}

    def apply(self, bounds: Bounds) -> None:
        for chunk in bounds.keys() & self._dead:
            del bounds[chunk]
        if self._allowed is not None:
            for chunk in bounds.keys() - self._allowed:
                del bounds[chunk]


def _add(bounds: Bounds, entries: Entries, step: float) -> None:
    """Add a list's bounds to those of its chunks."""
    worth = [step * impact for impact in range(256)]
    lows = entries.lows
    start = 0
    for block, count in entries.heads:
        base, end = block * BLOCK, start + count
        chunks = [base + low for low in lows[start:end]]
        values = [worth[impact] for impact in entries.impacts[start:end]]
        if bounds:
            known = bounds.get
            for chunk, value in zip(chunks, values, strict=True):
                bounds[chunk] = known(chunk, 0.0) + value
        else:
            bounds.update(zip(chunks, values, strict=True))
        start = end


def _floor(bounds: Bounds, left: float, search: Search) -> float:
    """The k-th best true score among the k best bounds, when it may end the reading; else 0.0."""
    if len(bounds) < search.k:
        return 0.0
    best = nlargest(search.k, bounds.items(), key=lambda item: item[1])
    return search.scorer.threshold([chunk for chunk, _ in best], search.k) if best[-1][1] > left else 0.0


def _pruned(
    rest: Sequence[Term], left: Sequence[float], lists: Lists, bounds: Bounds, floor: float
) -> list[tuple[float, int]]:
    """Look the remaining, frequent terms up for the surviving chunks only, until few are left."""
    alive = {chunk: bound for chunk, bound in bounds.items() if bound + left[0] >= floor}
    for at, term in enumerate(rest):
        if len(alive) <= FEW:
            return [(bound + left[at], chunk) for chunk, bound in alive.items()]
        chunks = [chunk for chunk, bound in alive.items() if bound + left[at] >= floor]
        alive = dict(zip(chunks, _raised(term, lists, chunks, alive), strict=True))
    return [(bound, chunk) for chunk, bound in alive.items() if bound >= floor]


def _raised(term: Term, lists: Lists, chunks: Sequence[int], bounds: Bounds) -> list[float]:
    """The bounds of the chunks with the term's added."""
    raised = [bounds[chunk] for chunk in chunks]
    for part in term.parts:
        entries = lists[part]
        for index, position in entries.positions(chunks):
            raised[index] += part.step * entries.impacts[position]
    return raised
