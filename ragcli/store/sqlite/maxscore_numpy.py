"""MaxScore with numpy: for long lists, batches and long-lived use. The same cuts as `maxscore`, an array at a time.

Chunk ids are mapped to dense slots (blocks may be part-filled), so that bounds add up in one flat array of which
only the touched places are ever read or cleared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragcli.store.sqlite.layout import BLOCK
from ragcli.store.sqlite.scoring import FEW, Admission, Entries, Pace, Part, Search, Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bounds = NDArray[np.float32]
    Slots = NDArray[np.int64]
    Mask = NDArray[np.bool_]


EPSILON = 2.0**-23  # of single precision


class Layout:
    """Where each block's chunks begin among the dense slots."""

    def __init__(self, db: sqlite3.Connection) -> None:
        rows = np.array(db.execute("SELECT block, size FROM blocks ORDER BY block").fetchall(), np.int64)
        self.blocks = rows[:, 0]
        self.starts = np.concatenate(([0], np.cumsum(rows[:, 1])))
        self._start_of = dict(zip(self.blocks.tolist(), self.starts.tolist(), strict=False))

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    def slots(self, entries: Entries) -> Slots:
        """The slots of a list's chunks.  # (n,)"""
        lows = np.frombuffer(entries.lows, "<u2").astype(np.int64)
        starts = [self._start_of[block] for block, _ in entries.heads]
        if len(starts) == 1:
            lows += starts[0]
            return lows
        lows += np.repeat(np.array(starts, np.int64), [count for _, count in entries.heads])
        return lows

    def slot(self, chunk: int) -> int:
        """The slot of a chunk id, or of the next one that exists."""
        block, low = divmod(chunk, BLOCK)
        at = int(np.searchsorted(self.blocks, block))
        if at < len(self.blocks) and self.blocks[at] == block:
            return min(int(self.starts[at]) + low, int(self.starts[at + 1]))
        return int(self.starts[at])

    def chunks(self, slots: Slots) -> list[int]:
        """The chunk ids of slots."""
        at = np.searchsorted(self.starts, slots, side="right") - 1
        ids: list[int] = (self.blocks[at] * BLOCK + slots - self.starts[at]).tolist()
        return ids

    def mask(self, admission: Admission) -> Mask | None:
        """True where a slot's chunk may be found; None when all may.  # (size,)"""
        if not admission.dead and admission.allowed is None:
            return None
        mask = np.full(self.size, admission.allowed is None)
        for first, last in admission.allowed or ():
            mask[self.slot(first) : self.slot(last + 1)] = True
        for block, lows in admission.dead.items():
            mask[np.frombuffer(lows, np.uint16).astype(np.int64) + self._start_of[block]] = False
        return mask


class Arena:
    """The layout and the flat arrays that searches share; every search leaves them as it found them, all zero."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.layout = Layout(db)
        self.bounds = np.zeros(self.layout.size, np.float32)
        self.marks = np.zeros(self.layout.size, np.bool_)


def candidates(ordered: Sequence[Term], search: Search, arena: Arena) -> list[tuple[float, int]]:
    """(bound, chunk id) of every chunk that may be among the best k; terms in descending order of bound."""
    scan = _Scan(search, arena, rounding=1.0 + (len(ordered) + 2) * EPSILON)
    left = np.cumsum([0.0, *(term.bound for term in reversed(ordered))])[::-1].tolist()
    floor, pace = 0.0, Pace()
    try:
        for at, term in enumerate(ordered):
            if floor > left[at]:
                scan.gather()
                return scan.pruned(ordered[at:], left[at:], floor)
            scan.add(term)
            if pace.is_due(left[at + 1]):
                scan.gather()
                floor = max(floor, scan.floor(left[at + 1]))
        scan.gather()
        return scan.pairs(floor)
    finally:
        scan.clear()


class _Scan:
    """The bounds of all chunks met so far: `slots` and, in the same order, `bounds`."""

    def __init__(self, search: Search, arena: Arena, *, rounding: float) -> None:
        self._search = search
        self._rounding = rounding  # what single precision may lose in adding up so many terms
        self._arena = arena
        self._layout = self._arena.layout
        self._mask = self._layout.mask(search.admission)
        self._touched: list[Slots] = []
        self.slots = np.empty(0, np.int64)
        self.bounds = np.empty(0, np.float32)

    def add(self, term: Term) -> None:
        """Read a term's lists whole."""
        flat = self._arena.bounds
        for part in term.parts:
            slots, worth = self._read(part)
            if self._mask is not None:
                admitted = self._mask[slots]
                slots, worth = slots[admitted], worth[admitted]
            before = flat[slots]
            flat[slots] = before + worth
            self._touched.append(slots[before == 0.0])

    def gather(self) -> None:
        """Bring `slots` and `bounds` in step with what was read."""
        self.slots = np.concatenate(self._touched)
        self.bounds = self._arena.bounds[self.slots]

    def _read(self, part: Part) -> tuple[Slots, Bounds]:
        """The slots of a list, and the bound of each of its entries."""
        entries = self._search.lists[part]
        worth = np.frombuffer(entries.impacts, np.uint8) * np.float32(part.step * self._rounding)
        return self._layout.slots(entries), worth

    def floor(self, left: float) -> float:
        """The k-th best true score among the k best bounds, when it may end the reading; else 0.0."""
        k = self._search.k
        if len(self.slots) < k:
            return 0.0
        best = np.argpartition(self.bounds, len(self.bounds) - k)[len(self.bounds) - k :]
        if self.bounds[best].min() <= left:
            return 0.0
        return self._search.scorer.threshold(self._layout.chunks(self.slots[best]), k)

    def pruned(self, rest: Sequence[Term], left: Sequence[float], floor: float) -> list[tuple[float, int]]:
        """Look the remaining, frequent terms up for the surviving chunks only, until few are left."""
        for at, term in enumerate(rest):
            self._keep(self.bounds >= floor - left[at])
            if len(self.slots) <= FEW:
                self.bounds = self.bounds + np.float32(left[at] * self._rounding)
                break
            for part in term.parts:
                self._look_up(part)
            self.bounds = self._arena.bounds[self.slots]
        return self.pairs(floor)

    def pairs(self, floor: float) -> list[tuple[float, int]]:
        """(bound, chunk id) of all whose bound reaches the floor."""
        self._keep(self.bounds >= floor)
        return list(zip(self.bounds.tolist(), self._layout.chunks(self.slots), strict=True))

    def clear(self) -> None:
        """Leave the arena all zero."""
        for slots in self._touched:
            self._arena.bounds[slots] = 0.0

    def _keep(self, alive: Mask) -> None:
        self.slots, self.bounds = self.slots[alive], self.bounds[alive]

    def _look_up(self, part: Part) -> None:
        """Add a list's bounds to those of the surviving chunks that are in it."""
        listed, worth = self._read(part)
        self._arena.marks[self.slots] = True
        there = np.flatnonzero(self._arena.marks[listed])
        self._arena.marks[self.slots] = False
        self._arena.bounds[listed[there]] += worth[there]
