"""The tables of the keyword index, and the bookkeeping of segments: which chunk ids each covers, which chunks are dead.

A segment is what one transaction of an ingest added, or several of those merged. Segments cover disjoint ranges of
chunk ids. A chunk keeps its id for life, and an id is never used twice.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from ragcli.store.sqlite.layout import BLOCK

SHARED_BLOCK = 4096  # batches up to this size fill up a block that others began; larger ones begin a block
LIST_SPACE = 1 << 32  # list ids of segment s are s * LIST_SPACE + n

TABLES = (
    "CREATE TABLE segments(id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, "
    "chunks INTEGER NOT NULL, average_length REAL NOT NULL, k1 REAL NOT NULL, b REAL NOT NULL)",
    "CREATE TABLE terms(segment INTEGER NOT NULL, term TEXT NOT NULL, df INTEGER NOT NULL, "
    "max_impact INTEGER NOT NULL, list INTEGER, data BLOB, PRIMARY KEY(segment, term)) WITHOUT ROWID",
    # Columns in the order of need: of a long row SQLite reads no further than it is asked.
    "CREATE TABLE posting_lists(id INTEGER PRIMARY KEY, heads BLOB NOT NULL, overflow BLOB, ids BLOB NOT NULL, "
    "impacts BLOB NOT NULL, tfs BLOB NOT NULL)",
    "CREATE TABLE blocks(block INTEGER PRIMARY KEY, size INTEGER NOT NULL)",
    "CREATE TABLE deleted(block INTEGER PRIMARY KEY, ids BLOB NOT NULL)",
)


def allocate(db: sqlite3.Connection, chunks: int) -> int:
    """The id of the first of `chunks` new chunks, which will be numbered on from it. Ids are never used twice."""
    row = db.execute("SELECT block, size FROM blocks ORDER BY block DESC LIMIT 1").fetchone()
    block, size = row or (-1, BLOCK)
    if chunks > SHARED_BLOCK or size + chunks > BLOCK:
        block, size = block + 1, 0
    db.execute("INSERT OR REPLACE INTO blocks(block, size) VALUES (?, ?)", (block, size + chunks))
    return int(block * BLOCK + size)


class SegmentRow(NamedTuple):
    """A segment: its range of chunk ids, both ends counted in, its live chunks, what its bounds were computed with."""

    first: int
    last: int
    chunks: int
    average_length: float
    k1: float
    b: float


def insert(db: sqlite3.Connection, row: SegmentRow) -> int:
    """Add a segment; gives its number."""
    cursor = db.execute(
        "INSERT INTO segments(first, last, chunks, average_length, k1, b) VALUES (?, ?, ?, ?, ?, ?)", row
    )
    return int(cursor.lastrowid or 0)


def lowest(averages: Iterable[float]) -> float:
    """The average length under which every part's bounds hold. A part of empty chunks has no bounds."""
    return min((average for average in averages if average > 0.0), default=0.0)


def row_of(db: sqlite3.Connection, segment: int) -> SegmentRow:
    """The segment of this number."""
    row = db.execute("SELECT first, last, chunks, average_length, k1, b FROM segments WHERE id = ?", (segment,))
    return SegmentRow(*row.fetchone())


def remove(db: sqlite3.Connection, segment: int) -> None:
    """Take a segment out with all its lists."""
    space = (segment * LIST_SPACE, (segment + 1) * LIST_SPACE - 1)
    db.execute("DELETE FROM terms WHERE segment = ?", (segment,))
    db.execute("DELETE FROM posting_lists WHERE id BETWEEN ? AND ?", space)
    db.execute("DELETE FROM segments WHERE id = ?", (segment,))


def dead_between(db: sqlite3.Connection, first: int, last: int) -> dict[int, frozenset[int]]:
    """The dead chunks of the blocks that the range touches: block -> low 16 bits."""
    rows = db.execute("SELECT block, ids FROM deleted WHERE block BETWEEN ? AND ?", (first // BLOCK, last // BLOCK))
    return {block: frozenset(memoryview(ids).cast("H")) for block, ids in rows}


def forget_dead(db: sqlite3.Connection, first: int, last: int) -> None:
    """Dead chunks of a range whose entries are gone. A block at the edge may hold dead of a neighbour."""
    for block, dead in dead_between(db, first, last).items():
        left = sorted(low for low in dead if not first <= block * BLOCK + low <= last)
        if left:
            db.execute("UPDATE deleted SET ids = ? WHERE block = ?", (array("H", left).tobytes(), block))
        else:
            db.execute("DELETE FROM deleted WHERE block = ?", (block,))


def covering(db: sqlite3.Connection, chunks: Iterable[int]) -> dict[int, list[int]]:
    """Which segment each chunk is in. Segments cover disjoint ranges of ids."""
    ranges = db.execute("SELECT first, last, id FROM segments ORDER BY first").fetchall()
    firsts = [row[0] for row in ranges]
    found: dict[int, list[int]] = {}
    for chunk in chunks:
        at = bisect_right(firsts, chunk) - 1
        if at < 0 or chunk > ranges[at][1]:
            raise ValueError(f"chunk {chunk} is in no segment")
        found.setdefault(ranges[at][2], []).append(chunk)
    return found


def mark_dead(db: sqlite3.Connection, chunks: Iterable[int]) -> None:
    """From now on no search finds these chunks."""
    by_block: dict[int, list[int]] = {}
    for chunk in chunks:
        by_block.setdefault(chunk // BLOCK, []).append(chunk % BLOCK)
    for block, lows in by_block.items():
        row = db.execute("SELECT ids FROM deleted WHERE block = ?", (block,)).fetchone()
        dead = sorted({*lows, *(memoryview(row[0]).cast("H") if row else ())})
        db.execute("INSERT OR REPLACE INTO deleted(block, ids) VALUES (?, ?)", (block, array("H", dead).tobytes()))
