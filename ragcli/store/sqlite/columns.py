"""Postings as columns: what a segment is made of in memory, joined from several and cut into rows, by whole arrays.

A term costs a few list items and slices, an entry a handful of array operations; no loop runs over entries.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING

import msgspec

from ragcli.store.sqlite.layout import BLOCK, INLINE, INLINE_ENTRY
from ragcli.store.sqlite.segments import LIST_SPACE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Rows = Iterator[tuple[object, ...]]
PAIR = Struct("<II")


class Columns(msgspec.Struct, frozen=True):
    """Postings by term, terms ascending: the entries of each one after the other, its heads likewise."""

    terms: Sequence[str]
    dfs: NDArray[np.int64]  # (n_terms,) entries of each, at least 1
    lows: NDArray[np.uint16]  # (n_entries,), as the next two
    impacts: NDArray[np.uint8]
    tfs: NDArray[np.uint8]
    head_counts: NDArray[np.int64]  # (n_terms,)
    heads: NDArray[np.uint32]  # (n_heads, 2) block, count
    overflow: Mapping[int, bytes]  # position of the term -> (position in its list, term frequency) pairs


def join(parts: Sequence[Columns]) -> Columns:
    """One of several whose chunk ids ascend from part to part."""
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    names = sorted(set().union(*(part.terms for part in parts)))
    number = {name: at for at, name in enumerate(names)}
    places = [np.fromiter(map(number.__getitem__, part.terms), np.int64, len(part.terms)) for part in parts]
    dfs, head_counts = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for at, part in zip(places, parts, strict=True):
        dfs[at] += part.dfs
        head_counts[at] += part.head_counts
    joined = _Joined(dfs, head_counts)
    for at, part in zip(places, parts, strict=True):
        joined.add(part, at)
    entries = (joined.lows, joined.impacts, joined.tfs)
    return Columns(names, dfs, *entries, head_counts, joined.heads, joined.overflow)


class _Joined:
    """Columns that are filled part by part: each term's room is known, and how far it is filled."""

    def __init__(self, dfs: NDArray[np.int64], head_counts: NDArray[np.int64]) -> None:
        import numpy as np

        self._starts = np.cumsum(dfs) - dfs
        self._next_entry, self._next_head = self._starts.copy(), np.cumsum(head_counts) - head_counts
        size = int(dfs.sum())
        self.lows = np.empty(size, "<u2")
        self.impacts, self.tfs = np.empty(size, np.uint8), np.empty(size, np.uint8)
        self.heads = np.empty((int(head_counts.sum()), 2), "<u4")
        self.overflow: dict[int, bytes] = {}

    def add(self, part: Columns, at: NDArray[np.int64]) -> None:
        """A part whose i-th term is number `at[i]` here."""
        places = _places(self._next_entry[at], part.dfs)
        self.lows[places], self.impacts[places], self.tfs[places] = part.lows, part.impacts, part.tfs
        self.heads[_places(self._next_head[at], part.head_counts)] = part.heads
        for position, pairs in part.overflow.items():
            term = int(at[position])
            before = int(self._next_entry[term] - self._starts[term])
            moved = b"".join(PAIR.pack(before + place, tf) for place, tf in PAIR.iter_unpack(pairs))
            self.overflow[term] = self.overflow.get(term, b"") + moved
        self._next_entry[at] += part.dfs
        self._next_head[at] += part.head_counts


def _places(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """`starts[i], starts[i] + 1 …`, `counts[i]` of them, one run after the other."""
    import numpy as np

    places = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    places += np.arange(len(places))
    return places


def without(columns: Columns, dead: Mapping[int, frozenset[int]]) -> Columns:
    """The columns without the entries of dead chunks (block -> low 16 bits), and without terms that had no others."""
    import numpy as np

    alive = _alive(columns, dead)
    if alive.all():
        return columns
    starts = np.cumsum(columns.dfs) - columns.dfs
    head_starts = np.cumsum(columns.heads[:, 1], dtype=np.int64) - columns.heads[:, 1]
    counts = np.add.reduceat(alive, head_starts, dtype=np.int64)
    head_counts = np.add.reduceat(counts > 0, np.cumsum(columns.head_counts) - columns.head_counts, dtype=np.int64)
    dfs = np.add.reduceat(alive, starts, dtype=np.int64)
    left = dfs > 0
    return Columns(
        [term for term, some in zip(columns.terms, left.tolist(), strict=True) if some],
        dfs[left],
        columns.lows[alive],
        columns.impacts[alive],
        columns.tfs[alive],
        head_counts[left],
        np.stack((columns.heads[:, 0], counts), axis=1).astype("<u4")[counts > 0],
        _overflow_of(columns.overflow, alive, starts, np.cumsum(left) - 1),
    )


def _alive(columns: Columns, dead: Mapping[int, frozenset[int]]) -> NDArray[np.bool_]:
    """True for each entry whose chunk is not dead."""
    import numpy as np

    table = np.ones((len(dead) + 1, BLOCK), np.bool_)  # a row a block with dead, and one for all others
    row_of = {block: row for row, block in enumerate(dead, 1)}
    for block, lows in dead.items():
        table[row_of[block], list(lows)] = False
    rows = np.fromiter((row_of.get(block, 0) for block in columns.heads[:, 0].tolist()), np.intp)
    return table[np.repeat(rows, columns.heads[:, 1]), columns.lows]


def _overflow_of(
    overflow: Mapping[int, bytes], alive: NDArray[np.bool_], starts: NDArray[np.int64], numbers: NDArray[np.int64]
) -> dict[int, bytes]:
    """The overflow of those that are alive, with the positions that they have now."""
    found: dict[int, bytes] = {}
    for term, pairs in overflow.items():
        start = int(starts[term])
        kept = [(place, tf) for place, tf in PAIR.iter_unpack(pairs) if alive[start + place]]
        if kept:
            moved = (PAIR.pack(int(alive[start : start + place].sum()), tf) for place, tf in kept)
            found[int(numbers[term])] = b"".join(moved)
    return found


_INSERTS = (
    "INSERT INTO terms(segment, term, df, max_impact, list, data) VALUES (?, ?, ?, ?, ?, ?)",
    "INSERT INTO posting_lists(id, heads, overflow, ids, impacts, tfs) VALUES (?, ?, ?, ?, ?, ?)",
)


def insert(db: sqlite3.Connection, columns: Columns, segment: int, lists: int = 0) -> int:
    """Write the rows of a segment's terms; `lists` of it have been written before. Gives how many there are now."""
    import numpy as np

    listed = columns.dfs > INLINE
    listed[list(columns.overflow)] = True
    numbers = np.cumsum(listed) + lists
    places = np.where(listed, numbers + segment * LIST_SPACE, 0).tolist()
    starts = np.cumsum(columns.dfs) - columns.dfs
    db.executemany(_INSERTS[0], _term_rows(columns, segment, ~listed, places))
    db.executemany(_INSERTS[1], _list_rows(columns, np.flatnonzero(listed), starts, places))
    return int(numbers[-1]) if len(numbers) else lists


def _term_rows(columns: Columns, segment: int, inline: NDArray[np.bool_], places: list[int]) -> Rows:
    """A row a term; the chosen ones with their entries in it."""
    import numpy as np

    starts = np.cumsum(columns.dfs) - columns.dfs
    highest = np.maximum.reduceat(columns.impacts, starts).tolist() if len(starts) else []
    ends = np.cumsum(np.where(inline, columns.dfs, 0) * INLINE_ENTRY.size).tolist()
    packed = memoryview(_packed(columns, inline))
    spans = zip([0, *ends], ends, strict=False)
    terms = zip(columns.terms, columns.dfs.tolist(), highest, places, spans, strict=True)
    return (
        (segment, term, df, high, place or None, None if place else packed[start:end])
        for term, df, high, place, (start, end) in terms
    )


def _packed(columns: Columns, terms: NDArray[np.bool_]) -> bytes:
    """The entries of the chosen terms in the form in which they stand inline."""
    import numpy as np

    chosen = np.repeat(terms, columns.dfs)
    heads = columns.heads[np.repeat(terms, columns.head_counts)]
    packed = np.empty(int(chosen.sum()), [("block", "<u4"), ("low", "<u2"), ("impact", "u1"), ("tf", "u1")])
    packed["block"] = np.repeat(heads[:, 0], heads[:, 1])
    packed["low"], packed["impact"], packed["tf"] = columns.lows[chosen], columns.impacts[chosen], columns.tfs[chosen]
    return packed.tobytes()


def _list_rows(columns: Columns, at: NDArray[np.int64], starts: NDArray[np.int64], places: list[int]) -> Rows:
    """The rows of the lists of the terms numbered `at`. Slices are views: a segment is not copied to be written."""
    import numpy as np

    ends, head_ends = starts + columns.dfs, np.cumsum(columns.head_counts)
    head_starts = head_ends - columns.head_counts
    heads = columns.heads.reshape(-1).view(np.uint8).data
    ids = columns.lows.view(np.uint8).data
    impact, tfs, overflow = columns.impacts.data, columns.tfs.data, columns.overflow
    bounds = [column[at].tolist() for column in (starts, ends, head_starts, head_ends)]
    for position, start, end, head, head_end in zip(at.tolist(), *bounds, strict=True):
        yield (
            places[position],
            heads[8 * head : 8 * head_end],
            overflow.get(position),
            ids[2 * start : 2 * end],
            impact[start:end],
            tfs[start:end],
        )
