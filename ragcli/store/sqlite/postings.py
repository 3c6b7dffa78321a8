"""Posting lists in SQLite: written a segment at a time, shrunk by deletes, joined by merges.

A segment is what one batch of an ingest added. For each of its terms it holds the chunks that have the term, in
ascending order: chunk ids as blocks of 65,536 (`heads`: block and count pairs, `ids`: the low 16 bits), one byte of
impact and one byte of term frequency each. A chunk keeps its id for life, so a merge only joins byte strings.

- impact: `tf / (tf + k1·(1 - b + b·dl/avgdl))` times 255, rounded up, with the average length of the segment when it
  was built. It bounds scores in a search (MaxScore: Turtle & Flood 1995) and is never a score itself.
- idf is nowhere: it follows from the live `df` of the terms and the live number of chunks (spec I32).
- a term frequency of 255 or more stands in `overflow`; a list of up to 8 entries stands inline in the term's row,
  since most terms are rare.
- a delete takes the chunk's terms out of `df` and puts its id into `deleted`; its entries go when segments merge.

All numbers are little-endian. Does not know documents, text or ranking (`search` does the latter).
"""

from __future__ import annotations

import sqlite3
import struct
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ragcli.options import Bm25Settings
from ragcli.store.sqlite.layout import BLOCK, INLINE, INLINE_ENTRY, SATURATED, from_inline
from ragcli.types import Event, Listener

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHARED_BLOCK = 4096  # segments up to this size fill up a block that others began; larger ones begin a block
FANOUT = 8  # so many segments of one size become one
DEAD_SHARE = 0.25  # a segment with more dead chunks than this is rewritten

FLUSH_ROWS = 8192  # rows that a merge holds back before it inserts them …
FLUSH_BYTES = 4 * 1024 * 1024  # … or bytes of their entries: a few thousand common terms are most of an index

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

_PAIR = struct.Struct("<II")
_LIST_SPACE = 1 << 32  # list ids of segment s are s * _LIST_SPACE + n


class Segment(msgspec.Struct, frozen=True):
    """The postings of one batch, its chunks numbered from 0: terms ascending, their entries one after the other."""

    chunks: int
    average_length: float
    bm25: Bm25Settings
    terms: list[str]
    dfs: bytes  # u32, one a term
    ids: bytes  # u16, one an entry, ascending within a term
    impacts: bytes  # u8, one an entry
    tfs: bytes  # u8, one an entry; SATURATED = see overflow
    overflow: dict[int, bytes]  # position of the term -> (position in its list, term frequency) pairs


class Inverter:
    """Collects chunks as lists of terms and turns them into a `Segment`. At most 65,536 chunks."""

    def __init__(self, bm25: Bm25Settings) -> None:
        self._bm25 = bm25
        self._vocabulary: defaultdict[str, int] = defaultdict()
        self._vocabulary.default_factory = self._vocabulary.__len__  # an unseen term gets the next number
        self._numbers = array("I")
        self._lengths = array("I")

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, terms: Sequence[str]) -> int:
        """Take in the next chunk; gives its length in terms."""
        if len(self._lengths) == BLOCK:
            raise ValueError(f"a segment holds at most {BLOCK} chunks")
        self._numbers.extend(map(self._vocabulary.__getitem__, terms))
        self._lengths.append(len(terms))
        return len(terms)

    def segment(self) -> Segment:
        """The postings of all chunks so far."""
        import numpy as np

        lengths = np.frombuffer(self._lengths, np.uint32).astype(np.int64)
        chunks = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        names = sorted(self._vocabulary)
        order = np.empty(len(names), np.int64)
        order[[self._vocabulary[name] for name in names]] = np.arange(len(names))
        keys = order[np.frombuffer(self._numbers, np.uint32)] << 16 | chunks
        keys.sort()
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        tf = np.diff(firsts, append=len(keys))
        return _columns(names, keys[firsts], tf, lengths, self._bm25)


def _columns(
    names: list[str], keys: NDArray[np.int64], tf: NDArray[np.int64], lengths: NDArray[np.int64], bm25: Bm25Settings
) -> Segment:
    """Cut sorted (term << 16 | chunk) keys and their frequencies into a segment's columns."""
    import numpy as np

    average = float(lengths.mean()) if len(lengths) else 0.0
    chunk = keys & (BLOCK - 1)
    dfs = np.bincount(keys >> 16, minlength=len(names))
    return Segment(
        chunks=len(lengths),
        average_length=average,
        bm25=bm25,
        terms=names,
        dfs=dfs.astype("<u4").tobytes(),
        ids=chunk.astype("<u2").tobytes(),
        impacts=impacts(tf, lengths[chunk], average, bm25).tobytes(),
        tfs=np.minimum(tf, SATURATED).astype(np.uint8).tobytes(),
        overflow=_overflow(keys >> 16, tf, np.cumsum(dfs) - dfs),
    )


def impacts(tf: NDArray[np.int64], length: NDArray[np.int64], average: float, bm25: Bm25Settings) -> NDArray[np.uint8]:
    """Impacts as bytes, rounded up: `tf / (tf + k1·(1 - b + b·length/average))` in 255ths.  # (n,) each"""
    import numpy as np

    norm = bm25.k1 * (1.0 - bm25.b + bm25.b * length / max(average, 1e-9))
    exact = tf / (tf + norm)
    return np.minimum(np.ceil(exact * 255.0 + 1e-9), 255.0).astype(np.uint8)


def _overflow(term: NDArray[np.int64], tf: NDArray[np.int64], starts: NDArray[np.int64]) -> dict[int, bytes]:
    import numpy as np

    found: dict[int, bytes] = {}
    for at in np.flatnonzero(tf >= SATURATED).tolist():
        number = int(term[at])
        found[number] = found.get(number, b"") + _PAIR.pack(at - int(starts[number]), int(tf[at]))
    return found


# ---------------------------------------------------------------------------------------------------------- writing


def allocate(db: sqlite3.Connection, chunks: int) -> int:
    """The id of the first of `chunks` new chunks, which will be numbered on from it. Ids are never used twice."""
    row = db.execute("SELECT block, size FROM blocks ORDER BY block DESC LIMIT 1").fetchone()
    block, size = row or (-1, BLOCK)
    if chunks > SHARED_BLOCK or size + chunks > BLOCK:
        block, size = block + 1, 0
    db.execute("INSERT OR REPLACE INTO blocks(block, size) VALUES (?, ?)", (block, size + chunks))
    return int(block * BLOCK + size)


def write(db: sqlite3.Connection, segment: Segment, first: int) -> None:
    """Add a segment; its chunk 0 has the id `first`, as `allocate` gave it. Inside the caller's transaction."""
    write_together(db, [(first, segment)])


def write_together(db: sqlite3.Connection, parts: Sequence[tuple[int, Segment]]) -> None:
    """Add several batches as one segment: (id of its first chunk, as `allocate` gave it; its postings), ids ascending.

    Costs far less than writing each and merging them: a term has one row, however many batches have it.
    Inside the caller's transaction.
    """
    filled = [(first, segment) for first, segment in parts if segment.chunks]
    if not filled:
        return
    (start, one), (end, last) = filled[0], filled[-1]
    chunks = sum(segment.chunks for _, segment in filled)
    average = _lowest(segment.average_length for _, segment in filled)
    row = _SegmentRow(start, end + last.chunks - 1, chunks, average, one.bm25.k1, one.bm25.b)
    number = _insert_segment(db, row)
    for statement, rows in zip(_INSERTS, _rows(_joined_columns(filled), number), strict=True):
        db.executemany(statement, rows)


def _lowest(averages: Iterable[float]) -> float:
    """The average length under which every part's bounds hold. A part of empty chunks has no bounds."""
    return min((average for average in averages if average > 0.0), default=0.0)


_Rows = Iterator[tuple[object, ...]]
_INSERTS = (
    "INSERT INTO terms(segment, term, df, max_impact, list, data) VALUES (?, ?, ?, ?, ?, ?)",
    "INSERT INTO posting_lists(id, heads, overflow, ids, impacts, tfs) VALUES (?, ?, ?, ?, ?, ?)",
)


class _Columns(NamedTuple):
    """Postings by term: the entries of each one after the other, its heads likewise."""

    terms: Sequence[str]
    dfs: NDArray[np.int64]  # (n_terms,)
    lows: NDArray[np.uint16]  # (n_entries,), as the next two
    impacts: NDArray[np.uint8]
    tfs: NDArray[np.uint8]
    head_counts: NDArray[np.int64]  # (n_terms,)
    heads: NDArray[np.uint32]  # (n_heads, 2) block, count
    overflow: dict[int, bytes]


def _joined_columns(parts: Sequence[tuple[int, Segment]]) -> _Columns:
    """The postings of several batches, term by term; of each term those of the first batch come first."""
    import numpy as np

    names = parts[0][1].terms if len(parts) == 1 else sorted(set().union(*(segment.terms for _, segment in parts)))
    number = {name: at for at, name in enumerate(names)}
    terms = [np.fromiter(map(number.__getitem__, segment.terms), np.int64) for _, segment in parts]
    counts = [np.frombuffer(segment.dfs, "<u4").astype(np.int64) for _, segment in parts]
    dfs, head_counts = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for at, count in zip(terms, counts, strict=True):
        dfs[at] += count
        head_counts[at] += 1
    joined = _Joined(dfs, head_counts)
    for (first, segment), at, count in zip(parts, terms, counts, strict=True):
        joined.add(first, segment, at, count)
    entries = (joined.lows, joined.impacts, joined.tfs)
    return _Columns(names, dfs, *entries, head_counts, joined.heads, joined.overflow)


class _Joined:
    """Columns that are filled batch by batch: each term's room is known, and how far it is filled."""

    def __init__(self, dfs: NDArray[np.int64], head_counts: NDArray[np.int64]) -> None:
        import numpy as np

        self._starts = np.cumsum(dfs) - dfs
        self._next_entry, self._next_head = self._starts.copy(), np.cumsum(head_counts) - head_counts
        size = int(dfs.sum())
        self.lows = np.empty(size, "<u2")
        self.impacts, self.tfs = np.empty(size, np.uint8), np.empty(size, np.uint8)
        self.heads = np.empty((int(head_counts.sum()), 2), "<u4")
        self.overflow: dict[int, bytes] = {}

    def add(self, first: int, segment: Segment, at: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """A batch whose i-th term is number `at[i]` here and has `counts[i]` entries."""
        import numpy as np

        shift = self._next_entry[at] - (np.cumsum(counts) - counts)
        places = np.repeat(shift, counts)
        places += np.arange(len(segment.tfs))
        block, offset = divmod(first, BLOCK)
        self.lows[places] = np.frombuffer(segment.ids, "<u2") + np.uint16(offset)
        self.impacts[places] = np.frombuffer(segment.impacts, np.uint8)
        self.tfs[places] = np.frombuffer(segment.tfs, np.uint8)
        self.heads[self._next_head[at]] = np.stack((np.full(len(at), block), counts), axis=1)
        for position, pairs in segment.overflow.items():
            term = int(at[position])
            before = int(self._next_entry[term] - self._starts[term])
            moved = b"".join(_PAIR.pack(before + place, tf) for place, tf in _PAIR.iter_unpack(pairs))
            self.overflow[term] = self.overflow.get(term, b"") + moved
        self._next_entry[at] += counts
        self._next_head[at] += 1


def _rows(columns: _Columns, number: int) -> tuple[_Rows, _Rows]:
    """The rows of a segment, table by table in key order."""
    import numpy as np

    listed = columns.dfs > INLINE
    listed[list(columns.overflow)] = True
    places = np.where(listed, np.cumsum(listed) + number * _LIST_SPACE, 0).tolist()
    starts = np.cumsum(columns.dfs) - columns.dfs
    highest = np.maximum.reduceat(columns.impacts, starts).tolist() if len(starts) else []
    inline_ends = np.cumsum(np.where(listed, 0, columns.dfs) * INLINE_ENTRY.size)
    inline = memoryview(_packed(columns, ~listed))
    spans = zip([0, *inline_ends.tolist()], inline_ends.tolist(), strict=False)
    terms = (
        (number, term, df, high, place or None, None if place else inline[start:end])
        for term, df, high, place, (start, end) in zip(
            columns.terms, columns.dfs.tolist(), highest, places, spans, strict=True
        )
    )
    return terms, _list_rows(columns, np.flatnonzero(listed), starts, places)


def _packed(columns: _Columns, terms: NDArray[np.bool_]) -> bytes:
    """The entries of the chosen terms in the form in which they stand inline."""
    import numpy as np

    chosen = np.repeat(terms, columns.dfs)
    heads = columns.heads[np.repeat(terms, columns.head_counts)]
    packed = np.empty(int(chosen.sum()), [("block", "<u4"), ("low", "<u2"), ("impact", "u1"), ("tf", "u1")])
    packed["block"] = np.repeat(heads[:, 0], heads[:, 1])
    packed["low"], packed["impact"], packed["tf"] = columns.lows[chosen], columns.impacts[chosen], columns.tfs[chosen]
    return packed.tobytes()


def _list_rows(columns: _Columns, at: NDArray[np.int64], starts: NDArray[np.int64], places: list[int]) -> _Rows:
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


class _SegmentRow(NamedTuple):
    first: int
    last: int
    chunks: int
    average_length: float
    k1: float
    b: float


def _insert_segment(db: sqlite3.Connection, row: _SegmentRow) -> int:
    cursor = db.execute(
        "INSERT INTO segments(first, last, chunks, average_length, k1, b) VALUES (?, ?, ?, ?, ?, ?)", row
    )
    return int(cursor.lastrowid or 0)


def _insert_rows(db: sqlite3.Connection, segment: int, lists: Iterable[PostingList]) -> None:
    """Two bulk inserts, held back for a while: each table is appended to in key order."""
    number, held = segment * _LIST_SPACE, 0
    terms: list[tuple[object, ...]] = []
    postings: list[tuple[object, ...]] = []
    for entry in lists:
        if len(entry.tfs) <= INLINE and entry.overflow is None:
            terms.append((segment, entry.term, entry.df, entry.max_impact, None, _inline(entry)))
        else:
            number += 1
            terms.append((segment, entry.term, entry.df, entry.max_impact, number, None))
            postings.append((number, entry.heads, entry.overflow, entry.ids, entry.impacts, entry.tfs))
        held += 4 * len(entry.tfs)
        if len(terms) >= FLUSH_ROWS or held >= FLUSH_BYTES:
            _flush(db, terms, postings)
            held = 0
    _flush(db, terms, postings)


def _flush(db: sqlite3.Connection, *tables: list[tuple[object, ...]]) -> None:
    for statement, rows in zip(_INSERTS, tables, strict=True):
        db.executemany(statement, rows)
        rows.clear()


def _inline(entry: PostingList) -> bytes:
    """The entries of a short list, packed one after the other."""
    if len(entry.tfs) == 1:  # most terms stand in one chunk
        return entry.heads[:4] + entry.ids + entry.impacts + entry.tfs
    lows = memoryview(entry.ids).cast("H")
    blocks = _blocks(entry.heads)
    columns = zip(blocks, lows, entry.impacts, entry.tfs, strict=True)
    return b"".join(INLINE_ENTRY.pack(*column) for column in columns)


def _blocks(heads: bytes) -> Iterator[int]:
    """The block of each entry."""
    for block, count in _PAIR.iter_unpack(heads):
        for _ in range(count):
            yield block


# --------------------------------------------------------------------------------------------------------- deleting


def delete(db: sqlite3.Connection, chunks: Mapping[int, Sequence[str]]) -> None:
    """Take chunks out: chunk id -> its terms exactly as they were indexed. Inside the caller's transaction.

    Terms that are not what was indexed (an index made under another version of Unicode) are found out by the rows
    that don't match; the segment is then rewritten without its dead chunks, which counts its terms anew.
    """
    by_segment = _by_segment(db, chunks)
    _mark_dead(db, chunks)
    for segment, dead in by_segment.items():
        counts: Counter[str] = Counter()
        for chunk in dead:
            counts.update(set(chunks[chunk]))
        rows = [(count, segment, term) for term, count in counts.items()]
        found = db.executemany("UPDATE terms SET df = df - ? WHERE segment = ? AND term = ?", rows).rowcount
        db.execute("UPDATE segments SET chunks = chunks - ? WHERE id = ?", (len(dead), segment))
        if found != len(rows) and rows:
            merge(db, [segment])
        else:
            _drop_empty(db, segment, counts)


def _by_segment(db: sqlite3.Connection, chunks: Iterable[int]) -> dict[int, list[int]]:
    """Which segment each chunk is in. Segments cover disjoint ranges of ids."""
    from bisect import bisect_right

    ranges = db.execute("SELECT first, last, id FROM segments ORDER BY first").fetchall()
    firsts = [row[0] for row in ranges]
    found: dict[int, list[int]] = {}
    for chunk in chunks:
        at = bisect_right(firsts, chunk) - 1
        if at < 0 or chunk > ranges[at][1]:
            raise ValueError(f"chunk {chunk} is in no segment")
        found.setdefault(ranges[at][2], []).append(chunk)
    return found


def _mark_dead(db: sqlite3.Connection, chunks: Iterable[int]) -> None:
    by_block: dict[int, list[int]] = {}
    for chunk in chunks:
        by_block.setdefault(chunk // BLOCK, []).append(chunk % BLOCK)
    for block, lows in by_block.items():
        row = db.execute("SELECT ids FROM deleted WHERE block = ?", (block,)).fetchone()
        dead = sorted({*lows, *(memoryview(row[0]).cast("H") if row else ())})
        db.execute("INSERT OR REPLACE INTO deleted(block, ids) VALUES (?, ?)", (block, array("H", dead).tobytes()))


def _drop_empty(db: sqlite3.Connection, segment: int, terms: Iterable[str]) -> None:
    """Rows of terms that no live chunk has any more."""
    for term in terms:
        row = db.execute("SELECT df, list FROM terms WHERE segment = ? AND term = ?", (segment, term)).fetchone()
        if row and row[0] <= 0:
            db.execute("DELETE FROM terms WHERE segment = ? AND term = ?", (segment, term))
            db.execute("DELETE FROM posting_lists WHERE id = ?", (row[1],))


# ---------------------------------------------------------------------------------------------------------- merging


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


def merge(db: sqlite3.Connection, segments: Sequence[int]) -> None:
    """Make one segment of several neighbours in the order of their ids (or of one, to be rid of its dead).

    Inside the caller's transaction.

    Bounds stay as they were computed; the new segment's average length is the smallest of its parts', which keeps
    them bounds (see `search`).
    """
    parts = [_segment_row(db, number) for number in segments]
    columns = list(zip(*parts, strict=True))
    first, last, live, average = min(columns[0]), max(columns[1]), sum(columns[2]), _lowest(columns[3])
    joined = _insert_segment(db, parts[0]._replace(first=first, last=last, chunks=live, average_length=average))
    lists = [read_lists(db, number) for number in segments]
    _insert_rows(db, joined, _joined(lists, _dead_between(db, first, last)))
    _forget_dead(db, first, last)
    for number in [*segments, *([] if live else [joined])]:
        _remove(db, number)


def _segment_row(db: sqlite3.Connection, segment: int) -> _SegmentRow:
    row = db.execute("SELECT first, last, chunks, average_length, k1, b FROM segments WHERE id = ?", (segment,))
    return _SegmentRow(*row.fetchone())


def _remove(db: sqlite3.Connection, segment: int) -> None:
    space = (segment * _LIST_SPACE, (segment + 1) * _LIST_SPACE - 1)
    db.execute("DELETE FROM terms WHERE segment = ?", (segment,))
    db.execute("DELETE FROM posting_lists WHERE id BETWEEN ? AND ?", space)
    db.execute("DELETE FROM segments WHERE id = ?", (segment,))


def _dead_between(db: sqlite3.Connection, first: int, last: int) -> dict[int, frozenset[int]]:
    rows = db.execute("SELECT block, ids FROM deleted WHERE block BETWEEN ? AND ?", (first // BLOCK, last // BLOCK))
    return {block: frozenset(memoryview(ids).cast("H")) for block, ids in rows}


def _forget_dead(db: sqlite3.Connection, first: int, last: int) -> None:
    """Dead chunks of a range whose entries are gone. A block at the edge may hold dead of a neighbour."""
    for block, dead in _dead_between(db, first, last).items():
        left = sorted(low for low in dead if not first <= block * BLOCK + low <= last)
        if left:
            db.execute("UPDATE deleted SET ids = ? WHERE block = ?", (array("H", left).tobytes(), block))
        else:
            db.execute("DELETE FROM deleted WHERE block = ?", (block,))


def read_lists(db: sqlite3.Connection, segment: int) -> Iterator[PostingList]:
    """A segment's lists in the order of their terms."""
    rows = db.execute(
        "SELECT term, df, max_impact, data, heads, ids, impacts, tfs, overflow FROM terms "
        "LEFT JOIN posting_lists ON posting_lists.id = list "
        "WHERE segment = ? ORDER BY term",
        (segment,),
    )
    for term, df, highest, data, *columns in rows:
        if data is not None:
            yield PostingList(term, df, highest, *from_inline(data), None)
        else:
            yield PostingList(term, df, highest, *columns)


def _joined(parts: Sequence[Iterator[PostingList]], dead: Mapping[int, frozenset[int]]) -> Iterator[PostingList]:
    from heapq import merge as merged
    from itertools import groupby
    from operator import attrgetter

    by_term = attrgetter("term")  # code point order is the order of UTF-8 bytes, in which SQLite sorts
    for _, group in groupby(merged(*parts, key=by_term), key=by_term):
        entry = _join(list(group))
        alive = _without(entry, dead) if dead else entry
        if alive.tfs:
            yield alive


def _join(entries: list[PostingList]) -> PostingList:
    """One list of several of the same term, given in the order of their ids."""
    if len(entries) == 1:
        return entries[0]
    overflow: list[bytes] = []
    before = 0
    for entry in entries:
        pairs = _PAIR.iter_unpack(entry.overflow or b"")
        overflow.extend(_PAIR.pack(before + at, tf) for at, tf in pairs)
        before += len(entry.tfs)
    return PostingList(
        entries[0].term,
        sum(entry.df for entry in entries),
        max(entry.max_impact for entry in entries),
        b"".join(entry.heads for entry in entries),
        b"".join(entry.ids for entry in entries),
        b"".join(entry.impacts for entry in entries),
        b"".join(entry.tfs for entry in entries),
        b"".join(overflow) or None,
    )


def _without(entry: PostingList, dead: Mapping[int, frozenset[int]]) -> PostingList:
    """The list without dead chunks; its `df` counted anew."""
    lows = memoryview(entry.ids).cast("H")
    kept = _alive(entry.heads, lows, dead)
    if len(kept) == len(lows):
        return entry._replace(df=len(kept))
    blocks = list(_blocks(entry.heads))
    place = {old: new for new, old in enumerate(kept)}
    pairs = [(place[at], tf) for at, tf in _PAIR.iter_unpack(entry.overflow or b"") if at in place]
    counts = Counter(blocks[at] for at in kept)
    return PostingList(
        entry.term,
        len(kept),
        max((entry.impacts[at] for at in kept), default=0),
        b"".join(_PAIR.pack(block, count) for block, count in counts.items()),
        array("H", [lows[at] for at in kept]).tobytes(),
        bytes(entry.impacts[at] for at in kept),
        bytes(entry.tfs[at] for at in kept),
        b"".join(_PAIR.pack(*pair) for pair in pairs) or None,
    )


def _alive(heads: bytes, lows: memoryview, dead: Mapping[int, frozenset[int]]) -> list[int]:
    """The positions of entries whose chunks are not dead."""
    kept: list[int] = []
    start = 0
    for block, count in _PAIR.iter_unpack(heads):
        gone = dead.get(block)
        span = range(start, start + count)
        kept.extend([at for at in span if lows[at] not in gone] if gone else span)
        start += count
    return kept
