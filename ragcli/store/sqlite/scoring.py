"""What a keyword search works with: query terms, their posting lists opened for look-ups, and true scores.

Does not decide which chunks to look at (`maxscore`, `maxscore_numpy`) nor which win (`search`).
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from json import dumps
from math import log
from struct import iter_unpack

import msgspec

from ragcli.options import Bm25Settings
from ragcli.store.sqlite.layout import SATURATED, from_inline

FEW_TERMS = 8
FEW = 256  # so many candidates are scored faster one by one than pruned further
Range = tuple[int, int]  # chunk ids, both ends counted in


class Scored(msgspec.Struct, frozen=True):
    """A chunk id, its BM25 score, and what each term of the query that it has adds to it: they add up to the score."""

    chunk: int
    score: float
    parts: dict[str, float]


class Part(msgspec.Struct, frozen=True):
    """One segment's entries of a term: where they stand, and what a step of impact is worth at most, in score."""

    step: float
    place: int | None
    data: bytes | None


class Term(msgspec.Struct, frozen=True):
    """A query term: how often the query has it, its live document frequency, idf, and the most it can add."""

    text: str
    times: int
    df: int
    idf: float
    bound: float
    parts: tuple[Part, ...]


class Entries:
    """A posting list, ready to look chunks up in."""

    __slots__ = ("_db", "_large", "_number", "_offsets", "_tfs", "heads", "impacts", "lows")

    def __init__(self, db: sqlite3.Connection, part: Part) -> None:
        self._db, self._number = db, part.place
        self._offsets: dict[int, Range] | None = None
        self._tfs: bytes | None
        self._large: dict[int, int] = {}
        if part.data is not None:
            heads, ids, self.impacts, self._tfs = from_inline(part.data)
        else:
            heads, overflow, ids, self.impacts, self._tfs = db.execute(_LIST, (part.place,)).fetchone()
            if overflow:
                self._large = dict(iter_unpack("<II", overflow))
        self.lows = memoryview(ids).cast("H")
        self.heads: list[tuple[int, int]] = list(iter_unpack("<II", heads))  # block, count

    def positions(self, chunks: Sequence[int]) -> list[tuple[int, int]]:
        """(index into `chunks`, position in the list) of each chunk that the list has."""
        if self._offsets is None:
            self._offsets = _offsets(self.heads)
        offsets, lows = self._offsets, self.lows
        found = []
        for index, chunk in enumerate(chunks):
            span = offsets.get(chunk >> 16)
            if span is not None:
                low = chunk & 0xFFFF
                at = bisect_left(lows, low, span[0], span[1])
                if at < span[1] and lows[at] == low:
                    found.append((index, at))
        return found

    def tf(self, position: int) -> int:
        """The term frequency of an entry."""
        if self._tfs is None:
            (self._tfs,) = self._db.execute("SELECT tfs FROM posting_lists WHERE id = ?", (self._number,)).fetchone()
        tf = self._tfs[position]
        return self._large[position] if tf == SATURATED else tf


# The frequencies of a long list are read when they are asked for: few of the frequent terms' entries ever are.
_LIST = """
SELECT heads, overflow, ids, impacts, CASE WHEN length(impacts) <= 4096 THEN tfs END FROM posting_lists WHERE id = ?
"""


def _offsets(heads: Sequence[Range]) -> dict[int, Range]:
    """Block -> the span of its entries. Merged small segments may name a block several times, one after the other."""
    spans: dict[int, Range] = {}
    ends = accumulate(count for _, count in heads)
    for (block, count), end in zip(heads, ends, strict=True):
        spans[block] = (spans[block][0] if block in spans else end - count, end)
    return spans


class Lists:
    """The lists of one search, read at most once each."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._read: dict[Part, Entries] = {}

    def __getitem__(self, part: Part) -> Entries:
        entries = self._read.get(part)
        if entries is None:
            self._read[part] = entries = Entries(self._db, part)
        return entries


class Admission(msgspec.Struct, frozen=True):
    """Which chunks may be found: none of the dead, and of the rest those in `allowed` (None: all)."""

    dead: dict[int, array[int]]  # block -> low 16 bits
    allowed: Sequence[Range] | None

    @property
    def size(self) -> int:
        """How many ids it takes to write the admission out."""
        return sum(map(len, self.dead.values())) + sum(last - first + 1 for first, last in self.allowed or ())


class Scorer:
    """True BM25 scores of single chunks (spec I32)."""

    def __init__(
        self, db: sqlite3.Connection, terms: Sequence[Term], lists: Lists, bm25: Bm25Settings, average: float
    ) -> None:
        self._db, self._terms, self._lists = db, terms, lists
        self._k1, self._flat, self._slope = bm25.k1, bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / average
        self._scored: dict[int, Scored] = {}

    def __call__(self, chunks: Sequence[int]) -> list[Scored]:
        """The scores of the chunks, in their order."""
        new = [chunk for chunk in chunks if chunk not in self._scored]
        if new:
            self._score(new)
        return [self._scored[chunk] for chunk in chunks]

    def _score(self, chunks: Sequence[int]) -> None:
        query = "SELECT id, length FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        flat, slope = self._flat, self._slope
        norms = {chunk: flat + slope * length for chunk, length in self._db.execute(query, (dumps(chunks),))}
        columns = [self._column(term, chunks, norms) for term in self._terms]
        names = [term.text for term in self._terms]
        for chunk, *parts in zip(chunks, *columns, strict=True):
            own = {name: part for name, part in zip(names, parts, strict=True) if part}
            self._scored[chunk] = Scored(chunk, sum(own.values()), own)

    def _column(self, term: Term, chunks: Sequence[int], norms: Mapping[int, float]) -> list[float]:
        """What the term adds to each chunk."""
        column = [0.0] * len(chunks)
        gain = self._k1 + 1.0
        for part in term.parts:
            entries = self._lists[part]
            for index, position in entries.positions(chunks):
                tf = entries.tf(position)
                column[index] = term.times * (term.idf * (tf * gain / (tf + norms[chunks[index]])))
        return column

    def threshold(self, chunks: Sequence[int], k: int) -> float:
        """The k-th best score among the chunks: no worse one can be among the best k of all. 0.0 when fewer."""
        scores = sorted((scored.score for scored in self(chunks)), reverse=True)
        return scores[k - 1] if len(scores) >= k else 0.0


def idf(count: int, df: int) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), always positive (spec I32)."""
    return log(1.0 + (count - df + 0.5) / (df + 0.5))


class Pace:
    """When a look for a new floor pays: after each of a few terms, of many only as the rest grows smaller.

    Finding the floor costs a pass over all candidates; for a query of thousands of terms it would be most of the work.
    """

    def __init__(self) -> None:
        self._looks = 0
        self._left = float("inf")

    def is_due(self, left: float) -> bool:
        """Whether to look, when terms worth `left` are still unread."""
        due = self._looks < FEW_TERMS or left <= 0.9 * self._left
        if due:
            self._looks, self._left = self._looks + 1, left
        return due


class Search(msgspec.Struct, frozen=True):
    """All that looking for candidates needs."""

    lists: Lists
    scorer: Scorer
    k: int
    admission: Admission
