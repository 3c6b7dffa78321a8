"""BM25 search over the posting lists: MaxScore for the candidates, then exact scores for the few that may win.

MaxScore (Turtle & Flood 1995): terms in the order of the most they can add; the lists of the first ones are read
whole, until what is left can't lift a chunk that has none of them into the best k. Impacts are upper bounds, so the
winners' true scores are computed from term frequency and length, and every comparison that cuts is against a true
score. The result equals the reference BM25 (spec I32) whatever was added, changed or deleted before.

A bound computed under other k1, b and average length holds when multiplied by 1/r, where r <= 1 is such that today's
K' = k1'·(1 - b' + b'·dl/avgdl') >= r·K for every length: tf / (tf + K') <= tf / (tf + r·K) <= (1/r) · tf / (tf + K).
K and K' are linear in dl, so the smaller one of the ratios of their two coefficients serves as r.

Up to `STDLIB_POSTINGS` entries the search stays in the standard library: importing numpy costs more than it saves.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragcli.options import Bm25Settings
from ragcli.store.sqlite import documents
from ragcli.store.sqlite.scoring import Admission, Lists, Part, Range, Scored, Scorer, Search, Term, idf

if TYPE_CHECKING:
    from ragcli.store.sqlite.maxscore_numpy import Arena

STDLIB_POSTINGS = 90_000  # about 0.65 µs each against 60 ms and more for importing numpy
WARM_POSTINGS = 1_000  # the same once numpy is there, or worth its import
ONE_SHOT = 3  # a process that searches more often than this lasts long enough for numpy to pay
FIRST_BATCH = 32  # chunks scored before the first look at whether that was enough


class KeywordIndex:
    """BM25 over an open index. Not shared between threads."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._searches = 0
        self._seen: tuple[int, int] | None = None
        self._kept: _State | None = None
        self._kept_arena: Arena | None = None
        self._kept_query: tuple[_State, tuple[object, ...], _Query] | None = None

    @classmethod
    def open(cls, path: Path) -> KeywordIndex:
        """The index file at `path`, to read. Raises what `schema.open_reader` raises."""
        from ragcli.store.sqlite.schema import open_reader

        return cls(open_reader(path))

    def _state(self) -> _State:
        """What every search needs of the whole index; read anew when anything was written."""
        seen = (self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes)
        if self._kept is None or seen != self._seen:
            self._seen, self._kept, self._kept_arena = seen, _State.read(self._db), None
        return self._kept

    def _arena(self) -> Arena:
        if self._kept_arena is None:
            from ragcli.store.sqlite.maxscore_numpy import Arena

            self._kept_arena = Arena(self._db)
        return self._kept_arena

    def statistics(self) -> tuple[int, float]:
        """The number of live chunks, and their mean length in terms (0.0 when there are none)."""
        state = self._state()
        return state.chunks, state.average

    def search(
        self,
        terms: Sequence[str],
        k: int,
        bm25: Bm25Settings | None = None,
        allowed: Sequence[Range] | None = None,
    ) -> list[Scored]:
        """The best `k` chunks that hold any of the terms, best first; equal scores by document id and chunk index.

        A term that stands in `terms` several times counts each time. `allowed`: sorted, disjoint ranges of chunk ids
        that may be found; None = all.
        """
        state = self._state()
        if not state.average or not terms or allowed == []:
            return []
        query = self._query(terms, bm25)
        ordered = sorted(query.known, key=lambda term: -term.bound)
        search = Search(query.lists, query.scorer, k, Admission(state.dead, allowed))
        return self._best(self._candidates(ordered, search), query.scorer, k)

    def scores(self, terms: Sequence[str], chunks: Sequence[int], bm25: Bm25Settings | None = None) -> list[Scored]:
        """The true scores of given chunks, in their order; 0.0 of those that hold none of the terms."""
        if not self._state().average:
            return [Scored(chunk, 0.0, {}) for chunk in chunks]
        return self._query(terms, bm25).scorer(chunks)

    def _query(self, terms: Sequence[str], bm25: Bm25Settings | None) -> _Query:
        """The query ready to be searched and scored: a hybrid search does one after the other."""
        state, chosen = self._state(), bm25 or Bm25Settings()
        asked = (tuple(terms), chosen)
        if self._kept_query is None or self._kept_query[0] is not state or self._kept_query[1] != asked:
            known = [term for term in self.look_up(terms, chosen) if term.df]
            lists = Lists(self._db)
            self._kept_query = state, asked, _Query(known, lists, Scorer(self._db, known, lists, chosen, state.average))
        return self._kept_query[2]

    def look_up(self, terms: Sequence[str], bm25: Bm25Settings | None = None) -> list[Term]:
        """The distinct terms in the order of their first mention, with what the index knows of them."""
        counts = Counter(terms)
        state, chosen = self._state(), bm25 or Bm25Settings()
        today = _Built(state.average, chosen.k1, chosen.b)
        scales = {number: _scale(built, today) for number, built in state.segments.items()}
        rows = self._db.execute(
            "SELECT segment, term, df, max_impact, list, data FROM terms "
            "WHERE segment IN (SELECT value FROM json_each(?)) AND term IN (SELECT value FROM json_each(?))",
            (dumps(list(scales)), dumps(list(counts))),
        )
        found: dict[str, list[_Row]] = {term: [] for term in counts}
        for segment, term, *row in rows:
            found[term].append(_Row(scales[segment], *row))
        weights = {term: idf(state.chunks, sum(row.df for row in entries)) for term, entries in found.items()}
        return [_term(term, times, found[term], weights[term], chosen.k1) for term, times in counts.items()]

    def _candidates(self, ordered: Sequence[Term], search: Search) -> list[tuple[float, int]]:
        """(bound, chunk id) of every chunk that may be among the best k."""
        if not ordered:
            return []
        self._searches += 1
        lasting = self._searches > ONE_SHOT or "numpy" in sys.modules
        budget = WARM_POSTINGS if lasting else STDLIB_POSTINGS
        if search.admission.size <= budget:
            from ragcli.store.sqlite.maxscore import candidates

            found = candidates(ordered, search, budget)
            if found is not None:
                return found
        from ragcli.store.sqlite.maxscore_numpy import candidates as numpy_candidates

        return numpy_candidates(ordered, search, self._arena())

    def _best(self, candidates: Iterable[tuple[float, int]], scorer: Scorer, k: int) -> list[Scored]:
        """The best k by true score. Bounds tell when to stop."""
        ordered = sorted(candidates, reverse=True)
        scored: list[Scored] = []
        floor, start, size = 0.0, 0, max(k, FIRST_BATCH)
        while start < len(ordered):
            batch = [chunk for bound, chunk in ordered[start : start + size] if bound >= floor]
            if not batch:
                break
            scored = sorted(scored + scorer(batch), key=lambda hit: -hit.score)
            floor = scored[k - 1].score * (1.0 - 1e-9) if len(scored) >= k else 0.0
            start, size = start + size, size * 2  # doubling: thousands of equal scores stay cheap
        return self._tied(scored, k)

    def _tied(self, scored: list[Scored], k: int) -> list[Scored]:
        """The first k in the final order. All that share the k-th score take part in the draw."""
        if len(scored) > k:
            scored = [hit for hit in scored if hit.score >= scored[k - 1].score]
        names = documents.names(self._db, [hit.chunk for hit in scored])
        return sorted(scored, key=lambda hit: (-hit.score, *names[hit.chunk]))[:k]


class _Built(msgspec.Struct, frozen=True):
    """Under which average length, k1 and b a segment's bounds were computed."""

    average: float
    k1: float
    b: float

    @property
    def norm(self) -> tuple[float, float]:
        """K as a linear function of length: its value at 0, its slope."""
        return self.k1 * (1.0 - self.b), self.k1 * self.b / self.average if self.average else 0.0


def _scale(built: _Built, today: _Built) -> float:
    """By how much bounds may be too low today: 1/r of the module's docstring, 255 (no bound at all) at most."""
    pairs = zip(today.norm, built.norm, strict=True)
    ratio = min((now / then for now, then in pairs if then > 0.0), default=1.0)
    return min(255.0, 1.0 / ratio) if 0.0 < ratio < 1.0 else 255.0 if ratio == 0.0 else 1.0


class _State(msgspec.Struct, frozen=True):
    """The index as a whole: live chunks, their mean length, its segments, its dead chunks by block."""

    chunks: int
    average: float
    segments: dict[int, _Built]
    dead: dict[int, array[int]]

    @classmethod
    def read(cls, db: sqlite3.Connection) -> _State:
        rows = db.execute("SELECT key, value FROM meta WHERE key IN ('chunk_count', 'term_count')")
        values: dict[str, int] = dict(rows.fetchall())
        chunks = values.get("chunk_count", 0)
        segments = db.execute("SELECT id, average_length, k1, b FROM segments ORDER BY first")
        return cls(
            chunks,
            values.get("term_count", 0) / chunks if chunks else 0.0,
            {number: _Built(*built) for number, *built in segments},
            {block: array("H", ids) for block, ids in db.execute("SELECT block, ids FROM deleted")},
        )


class _Query(msgspec.Struct, frozen=True):
    """Terms that some chunk has, their lists as far as they were read, and scores as far as they were computed."""

    known: list[Term]
    lists: Lists
    scorer: Scorer


class _Row(msgspec.Struct, frozen=True):
    """A term in one segment."""

    scale: float
    df: int
    max_impact: int
    place: int | None
    data: bytes | None


def _term(text: str, times: int, rows: Sequence[_Row], weight: float, k1: float) -> Term:
    step = times * weight * (k1 + 1.0) / 255.0 * (1.0 + 1e-9)  # a hair over, so that rounding can't undercut
    parts = tuple(Part(step * row.scale, row.place, row.data) for row in rows)
    highest = max((min(255.0, row.scale * row.max_impact) for row in rows), default=0.0)
    return Term(text, times, sum(row.df for row in rows), weight, step * highest, parts)
