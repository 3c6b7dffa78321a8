"""Segments joined, and rid of their dead: so that a search meets few segments however the index came about.

A merge goes through the terms in ascending slices, so its memory does not grow with the segments.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragcli.store.sqlite import columns, segments
from ragcli.store.sqlite.columns import Columns
from ragcli.store.sqlite.layout import BLOCK, INLINE_ENTRY, from_inline
from ragcli.types import Event, Listener

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FANOUT = 8  # so many segments of one size become one
DEAD_SHARE = 0.25  # a segment with more dead chunks than this is rewritten
SLICE = 1024 * 1024  # entries that a merge has in hand, at about 30 bytes each


def maintain(db: sqlite3.Connection, listen: Listener) -> None:
    """Rewrite segments that are mostly dead, and join runs of small ones, a transaction each."""
    while group := _due(db):
        listen(Event(stage="merging", unit="segments", detail=f"{len(group)} segments"))
        with db:
            db.execute("BEGIN IMMEDIATE")
            merge(db, group)


def _due(db: sqlite3.Connection) -> list[int]:
    """The next segments to rewrite together: neighbours in id order, so that ranges stay disjoint."""
    rows = db.execute("SELECT id, chunks, last - first + 1, k1, b FROM segments ORDER BY first").fetchall()
    for number, live, width, *_ in rows:
        if live == 0 or (live < width * (1 - DEAD_SHARE) and _dead_in(db, number)):
            return [number]
    for length in range(FANOUT, len(rows) + 1):
        for at in range(len(rows) - length + 1):
            run = rows[at : at + length]
            if _worth_joining([width for _, _, width, *_ in run]) and len({(k1, b) for *_, k1, b in run}) == 1:
                return [number for number, *_ in run]
    return []


def _worth_joining(widths: Sequence[int]) -> bool:
    """No single segment makes up most of the work: each chunk is rewritten about once per doubling of the index."""
    return max(widths) * 4 <= sum(widths)


def _dead_in(db: sqlite3.Connection, segment: int) -> bool:
    """Whether any dead chunk of the segment still has entries (a rewritten one has only a gap in its ids)."""
    first, last = db.execute("SELECT first, last FROM segments WHERE id = ?", (segment,)).fetchone()
    blocks = db.execute("SELECT block, ids FROM deleted WHERE block BETWEEN ? AND ?", (first // BLOCK, last // BLOCK))
    return any(
        first <= block * BLOCK + low <= last for block, ids in blocks for low in memoryview(ids).cast("H").tolist()
    )


def merge(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Make one segment of several neighbours in the order of their ids (or of one, to be rid of its dead).

    Inside the caller's transaction. Bounds stay as they were computed; the new segment's average length is the
    smallest of its parts', which keeps them bounds (see `search`).
    """
    parts = [segments.row_of(db, number) for number in numbers]
    facts = list(zip(*parts, strict=True))
    first, last, live, average = min(facts[0]), max(facts[1]), sum(facts[2]), segments.lowest(facts[3])
    if not live:
        segments.forget_dead(db, first, last)
        for number in numbers:
            segments.remove(db, number)
        return
    joined = segments.insert(db, parts[0]._replace(first=first, last=last, chunks=live, average_length=average))
    dead = segments.dead_between(db, first, last)
    lists = 0
    for piece in _slices(db, numbers):
        alive = columns.without(piece, dead) if dead else piece
        lists = columns.insert(db, alive, joined, lists)
    segments.forget_dead(db, first, last)
    for number in numbers:
        segments.remove(db, number)


class _Row(NamedTuple):
    """A term's row with its list, as they are stored."""

    term: str
    data: bytes | None
    heads: bytes
    ids: bytes
    impacts: bytes
    tfs: bytes
    overflow: bytes | None

    @property
    def entries(self) -> int:
        return len(self.tfs) if self.data is None else len(self.data) // INLINE_ENTRY.size


def _slices(db: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[Columns]:
    """The postings of the segments together, a range of terms at a time."""
    sizes = [segments.row_of(db, number).chunks for number in numbers]
    readers = [_Reader(_stored(db, number), size) for number, size in zip(numbers, sizes, strict=True)]
    by_size = sorted(readers, key=lambda reader: -reader.size)
    while pace := next((reader for reader in by_size if reader.first is not None), None):
        ahead = pace.take(SLICE * pace.size // max(sum(sizes), 1))
        end = ahead[-1].term
        taken = [ahead if reader is pace else reader.until(end) for reader in readers]
        yield columns.join([part for rows in taken for part in _columns(rows)])


class _Reader:
    """A segment's rows in the order of their terms, one of them held in hand; `size` is its number of chunks."""

    def __init__(self, rows: Iterator[_Row], size: int) -> None:
        self.size = size
        self._rows = rows
        self.first = next(rows, None)

    def take(self, entries: int) -> list[_Row]:
        """Rows of about so many entries; at least one."""
        taken: list[_Row] = []
        while self.first is not None and (entries > 0 or not taken):
            taken.append(self.first)
            entries -= self.first.entries
            self.first = next(self._rows, None)
        return taken

    def until(self, term: str) -> list[_Row]:
        """All rows up to and with this term."""
        taken: list[_Row] = []
        while self.first is not None and self.first.term <= term:
            taken.append(self.first)
            self.first = next(self._rows, None)
        return taken


def _stored(db: sqlite3.Connection, number: int) -> Iterator[_Row]:
    query = (
        "SELECT term, data, heads, ids, impacts, tfs, overflow FROM terms "
        "LEFT JOIN posting_lists ON posting_lists.id = list WHERE segment = ? ORDER BY term"
    )
    return map(_Row._make, db.execute(query, (number,)))


def _columns(rows: Sequence[_Row]) -> Iterator[Columns]:
    """The rows' postings: those of the short lists, and those of the long ones."""
    inline = [row for row in rows if row.data is not None]
    if inline:
        yield _of_inline(inline)
    listed = [row for row in rows if row.data is None]
    if listed:
        yield _of_lists(listed)


def _of_inline(rows: Sequence[_Row]) -> Columns:
    import numpy as np

    dfs = np.array([row.entries for row in rows], np.int64)
    packed = np.frombuffer(
        b"".join([row.data or b"" for row in rows]),
        [("block", "<u4"), ("low", "<u2"), ("impact", "u1"), ("tf", "u1")],
    )
    starts = np.cumsum(dfs) - dfs
    opens = np.ones(len(packed), np.bool_)  # an entry opens a head where its term or its block is another
    opens[1:] = packed["block"][1:] != packed["block"][:-1]
    opens[starts] = True
    at = np.flatnonzero(opens)
    heads = np.stack((packed["block"][at], np.diff(at, append=len(packed))), axis=1).astype("<u4")
    head_counts = np.add.reduceat(opens, starts, dtype=np.int64)
    lows, impacts, tfs = (np.ascontiguousarray(packed[name]) for name in ("low", "impact", "tf"))
    return Columns([row.term for row in rows], dfs, lows, impacts, tfs, head_counts, heads, {})


def _of_lists(rows: Sequence[_Row]) -> Columns:
    import numpy as np

    def joined(field: str, kind: str) -> NDArray[np.generic]:
        return np.frombuffer(b"".join([getattr(row, field) for row in rows]), kind)

    return Columns(
        [row.term for row in rows],
        np.array([row.entries for row in rows], np.int64),
        joined("ids", "<u2"),  # type: ignore[arg-type]  # numpy can't tell a kind from its name
        joined("impacts", "u1"),  # type: ignore[arg-type]
        joined("tfs", "u1"),  # type: ignore[arg-type]
        np.array([len(row.heads) // 8 for row in rows], np.int64),
        joined("heads", "<u4").reshape(-1, 2),  # type: ignore[arg-type]
        {at: row.overflow for at, row in enumerate(rows) if row.overflow},
    )


class PostingList(NamedTuple):
    """A term's entries in one segment: `heads` u32 pairs (block, count), `ids` u16, `impacts` u8, `tfs` u8."""

    term: str
    df: int
    max_impact: int
    heads: bytes
    ids: bytes
    impacts: bytes
    tfs: bytes
    overflow: bytes | None


def read_lists(db: sqlite3.Connection, segment: int) -> Iterator[PostingList]:
    """A segment's lists in the order of their terms."""
    rows = db.execute(
        "SELECT term, df, max_impact, data, heads, ids, impacts, tfs, overflow FROM terms "
        "LEFT JOIN posting_lists ON posting_lists.id = list "
        "WHERE segment = ? ORDER BY term",
        (segment,),
    )
    for term, df, highest, data, *blobs in rows:
        if data is not None:
            yield PostingList(term, df, highest, *from_inline(data), None)
        else:
            yield PostingList(term, df, highest, *blobs)
