"""Posting lists in SQLite: written a segment at a time, shrunk by deletes, joined by merges.

For each of its terms a segment holds the chunks that have the term, in
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
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from unicodedata import unidata_version

import msgspec

from ragcli.options import Bm25Settings
from ragcli.store.sqlite import columns, segments
from ragcli.store.sqlite.columns import PAIR, Columns
from ragcli.store.sqlite.layout import BLOCK, SATURATED
from ragcli.store.sqlite.merging import merge
from ragcli.store.sqlite.segments import SegmentRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        """The postings of all chunks. Ends the inverter: its vocabulary refers to itself, which would keep it alive."""
        import numpy as np

        self._vocabulary.default_factory = None
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
        found[number] = found.get(number, b"") + PAIR.pack(at - int(starts[number]), int(tf[at]))
    return found


def write(db: sqlite3.Connection, parts: Sequence[tuple[int, Segment]]) -> None:
    """Add several batches as one segment: (id of its first chunk, as `allocate` gave it; its postings), ids ascending.

    Costs far less than writing each and merging them: a term has one row, however many batches have it.
    Inside the caller's transaction.
    """
    filled = [(first, segment) for first, segment in parts if segment.chunks]
    if not filled:
        return
    _note_unicode(db)
    (start, one), (end, last) = filled[0], filled[-1]
    chunks = sum(segment.chunks for _, segment in filled)
    average = segments.lowest(segment.average_length for _, segment in filled)
    row = SegmentRow(start, end + last.chunks - 1, chunks, average, one.bm25.k1, one.bm25.b)
    columns.insert(db, columns.join([_placed(*part) for part in filled]), segments.insert(db, row))


def _note_unicode(db: sqlite3.Connection) -> None:
    """Remember under which version of Unicode terms were cut: letters and case differ from one to the next."""
    db.execute("INSERT OR IGNORE INTO meta(key, value) VALUES ('unicode', ?)", (unidata_version,))
    db.execute("UPDATE meta SET value = 'several' WHERE key = 'unicode' AND value <> ?", (unidata_version,))


def _placed(first: int, segment: Segment) -> Columns:
    """A batch's postings under the ids that its chunks have. All of them lie in one block."""
    import numpy as np

    block, offset = divmod(first, BLOCK)
    dfs = np.frombuffer(segment.dfs, "<u4")
    return Columns(
        segment.terms,
        dfs.astype(np.int64),
        np.frombuffer(segment.ids, "<u2") + np.uint16(offset),
        np.frombuffer(segment.impacts, np.uint8),
        np.frombuffer(segment.tfs, np.uint8),
        np.ones(len(dfs), np.int64),
        np.stack((np.full(len(dfs), block, "<u4"), dfs), axis=1),
        segment.overflow,
    )


def delete(db: sqlite3.Connection, chunks: Mapping[int, Sequence[str]]) -> None:
    """Take chunks out: chunk id -> its terms exactly as they were indexed. Inside the caller's transaction.

    Where the terms may not be what was indexed (an index that was written under another version of Unicode, or a row
    that is not there), the segment is rewritten without its dead chunks, which counts its terms anew.
    """
    reliable = db.execute("SELECT value FROM meta WHERE key = 'unicode'").fetchone() == (unidata_version,)
    by_segment = segments.covering(db, chunks)
    segments.mark_dead(db, chunks)
    for segment, dead in by_segment.items():
        counts: Counter[str] = Counter()
        for chunk in dead:
            counts.update(set(chunks[chunk]))
        rows = [(count, segment, term) for term, count in counts.items()]
        found = db.executemany("UPDATE terms SET df = df - ? WHERE segment = ? AND term = ?", rows).rowcount
        db.execute("UPDATE segments SET chunks = chunks - ? WHERE id = ?", (len(dead), segment))
        if (found != len(rows) and rows) or not reliable:
            merge(db, [segment])
        else:
            _drop_empty(db, segment, counts)


def _drop_empty(db: sqlite3.Connection, segment: int, terms: Iterable[str]) -> None:
    """Rows of terms that no live chunk has any more."""
    for term in terms:
        row = db.execute("SELECT df, list FROM terms WHERE segment = ? AND term = ?", (segment, term)).fetchone()
        if row and row[0] <= 0:
            db.execute("DELETE FROM terms WHERE segment = ? AND term = ?", (segment, term))
            db.execute("DELETE FROM posting_lists WHERE id = ?", (row[1],))
