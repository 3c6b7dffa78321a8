"""Dense search: the chunks whose vectors have the highest cosine with a query's (spec R3, R4, R9, R41).

Every vector is compared as long as there are few, and always with `exact`. Else the bits of the vectors (`bit_planes`)
tell which ones may be among the best, and those are compared. Float32 scores with a known error only narrow the choice
down; what could be among the best k is scored again in a way that gives equal vectors equal scores (`cosine`).

The vectors come from the side file (`vector_file`), what it lacks from SQLite; what the index does not have any more
is never looked at. The file may be damaged, which no checksum tells in time: what is found in it is compared with
SQLite's vectors; where it is not theirs, or can't be right, the search is done from SQLite and the file is made anew.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ragcli.store.sqlite import bit_planes, cosine, documents, vector_file, vectors
from ragcli.store.sqlite.scoring import Range
from ragcli.store.sqlite.vector_file import Snapshot, VectorFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

PLAIN = 20_000_000  # numbers (vectors times dimension) that are all compared: about 0.6 ns each
CANDIDATES = 400_000  # numbers of those vectors that are compared where not all are; the fewer bits, the more vectors
PER_HIT = 20  # candidates at least for each hit that is asked for
LEAST = 500  # candidates, whatever their dimension


class DenseScored(msgspec.Struct, frozen=True):
    """A chunk id and the cosine of its vector with the query's."""

    chunk: int
    score: float


class _Part(msgspec.Struct, frozen=True):
    """Vectors in one place, by ascending chunk id; `alive`: the positions that count, None = all."""

    ids: Ids
    rows: NDArray[np.float16]
    norms: NDArray[np.float32]
    alive: Ids | None = None
    planes: NDArray[np.uint64] | None = None


class _Found(msgspec.Struct, frozen=True):
    """Positions in a part that may win, and their approximate scores."""

    part: _Part
    positions: Ids
    scores: NDArray[np.float32]


class _Damaged(Exception):
    """The side file holds other vectors than the index."""


class DenseIndex:
    """Cosine search over an open index. Not shared between threads.

    Each call takes the index as the connection sees it then; for several calls on one state, open a transaction.
    """

    def __init__(self, db: sqlite3.Connection, index: str | os.PathLike[str], dimension: int) -> None:
        self._db, self._dimension = db, dimension
        self._path = vectors.side_file(index)
        self._seen: Snapshot | None = None
        self._parts: Sequence[_Part] = ()

    def search(
        self,
        query: NDArray[np.float32],
        k: int,
        *,
        allowed: Sequence[Range] | None = None,
        exact: bool = False,
        floor: float | None = None,
    ) -> list[DenseScored]:
        """The best `k` chunks by cosine with `query` (dimension,), best first; equal scores by document id and index.

        `allowed`: sorted, disjoint ranges of chunk ids that may be found; None = all. `floor`: the lowest cosine that
        counts. `exact` compares every vector however many there are. A query of length 0 is near to nothing.
        Raises: IndexCorrupt.
        """
        unit = self._query(query)
        if unit.unit is None or k < 1 or allowed == []:
            return []
        wanted = None if exact else max(CANDIDATES // self._dimension, PER_HIT * k, LEAST)
        with vector_file.one_state(self._db):
            try:
                found = [_narrowed(part, unit, wanted, allowed) for part in self._current()]
                return self._true(self._best(found, unit, k, floor), unit)
            except _Damaged:
                found = [_narrowed(part, unit, None, allowed) for part in self._anew()]
                return self._best(found, unit, k, floor)

    def scores(self, query: NDArray[np.float32], chunks: Sequence[int]) -> dict[int, float]:
        """The cosines of these chunks, as `search` gives them; a chunk without a vector is not there."""
        unit = self._query(query)
        found, rows = vector_file.rows_of(self._db, chunks, self._dimension)
        if unit.unit is None:
            return dict.fromkeys(found, 0.0)
        return dict(zip(found, cosine.exact(rows, unit).tolist(), strict=True))

    def vectors(self, chunks: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Those of the chunks that have a vector, in their order, and the vectors, of length 1.  # (n, dimension)"""
        found, rows = vector_file.rows_of(self._db, chunks, self._dimension)
        place = {chunk: at for at, chunk in enumerate(found)}
        named = [chunk for chunk in chunks if chunk in place]
        return named, cosine.unit_rows(rows[[place[chunk] for chunk in named]])

    def _query(self, vector: NDArray[np.float32]) -> cosine.Query:
        if vector.shape != (self._dimension,):
            raise ValueError(f"a query of shape {vector.shape}, but the index's vectors have {self._dimension} numbers")
        return cosine.Query(vector)

    # ------------------------------------------------------------------------------------------------ what there is

    def _current(self) -> Sequence[_Part]:
        now = Snapshot.read(self._db)
        if now != self._seen:
            self._parts, self._seen = (), None
            self._parts, self._seen = self._opened(now), now
        return self._parts

    def _opened(self, now: Snapshot) -> Sequence[_Part]:
        if not now.count:
            return ()
        if now.count <= vectors.FEW:
            return (_held(*vector_file.every_row(self._db, self._dimension)),)
        file = vector_file.load(self._path, self._dimension)
        if file is not None and file.shows == now:
            self._probe(file)
            return (_whole(file),)
        return self._patched(now, file)

    def _probe(self, file: VectorFile, positions: Ids | None = None) -> None:
        if not vector_file.agrees(self._db, file, positions):
            raise _Damaged

    def _anew(self) -> Sequence[_Part]:
        """All vectors from SQLite. They are kept only where no sound file could take the damaged one's place."""
        now = Snapshot.read(self._db)
        self._parts, self._seen = (), None
        written = self._written(vector_file.load(self._path, self._dimension), anew=True)
        parts = (_held(*vector_file.every_row(self._db, self._dimension)),)
        if not written:
            self._parts, self._seen = parts, now
        return parts

    def _patched(self, now: Snapshot, file: VectorFile | None) -> Sequence[_Part]:
        """What the file has of this state, and the rest from SQLite; a new file if that is much."""
        ids, tags = vector_file.live(self._db)
        usable = file if file is not None and file.serves(now) else None
        at = vector_file.places(usable, ids, tags) if usable else np.full(len(ids), -1, np.int64)
        if usable is not None:
            self._probe(usable, at[at >= 0])
        missing = np.count_nonzero(at < 0)
        if missing > max(vectors.FEW, vector_file.GROWN * len(ids)) and self._written(file):
            made = vector_file.load(self._path, self._dimension)
            if made is not None and made.shows == now:
                return (_whole(made),)
        rest = _held(*self._rest(ids, at))
        return (rest,) if usable is None else (_whole(usable, at[at >= 0]), rest)

    def _rest(self, ids: Ids, at: Ids) -> tuple[list[int], NDArray[np.float16]]:
        chunks = ids[at < 0].tolist()
        if len(chunks) == len(ids):
            return vector_file.every_row(self._db, self._dimension)
        return vector_file.rows_of(self._db, chunks, self._dimension)

    def _written(self, seen: VectorFile | None, *, anew: bool = False) -> bool:
        try:
            return vector_file.write_beside(self._db, self._path, seen, self._dimension, anew=anew)
        except OSError:  # a folder that can't be written, a full disk: memory serves as well
            return False

    # ------------------------------------------------------------------------------------------------ which win

    def _best(self, found: Sequence[_Found], query: cosine.Query, k: int, floor: float | None) -> list[DenseScored]:
        slack = cosine.error(self._dimension)
        lowest = _kth([one.scores for one in found], k) - 2 * slack
        if floor is not None:
            lowest = max(lowest, floor - slack)
        chunks, scores = [], []
        for one in found:
            near = one.scores >= lowest
            left = one.positions[near]
            chunks.append(one.part.ids[left])
            scores.append(_exact(one.part, left, query, one.scores[near]))
        return self._ordered(np.concatenate(chunks), np.concatenate(scores), k, floor) if chunks else []

    def _true(self, hits: list[DenseScored], query: cosine.Query) -> list[DenseScored]:
        """The same hits, once SQLite's vectors are seen to score as they do."""
        if any(part.planes is not None for part in self._parts):
            chunks, rows = vector_file.rows_of(self._db, [hit.chunk for hit in hits], self._dimension)
            scores = dict(zip(chunks, cosine.exact(rows, query).tolist(), strict=True))
            if any(scores.get(hit.chunk) != hit.score for hit in hits):
                raise _Damaged
        return hits

    def _ordered(self, chunks: Ids, scores: NDArray[np.float64], k: int, floor: float | None) -> list[DenseScored]:
        """The first k in the final order. All that share the k-th score take part in the draw."""
        lowest = max(_kth([scores], k), -np.inf if floor is None else floor)
        kept = scores >= lowest
        chunks, scores = chunks[kept], scores[kept]
        order = np.argsort(-scores, kind="stable")
        hits = [DenseScored(*pair) for pair in zip(chunks[order].tolist(), scores[order].tolist(), strict=True)]
        tied = _tied(hits)
        if tied:
            names = documents.names(self._db, tied)
            hits.sort(key=lambda hit: (-hit.score, *names.get(hit.chunk, ())))
        return hits[:k]


def _held(ids: Sequence[int], rows: NDArray[np.float16]) -> _Part:
    return _Part(np.array(ids, np.int64), rows, cosine.norms(cosine.widened(rows)))


def _whole(file: VectorFile, alive: Ids | None = None) -> _Part:
    return _Part(file.ids, file.rows, file.norms, alive, file.planes)


def _narrowed(part: _Part, query: cosine.Query, wanted: int | None, allowed: Sequence[Range] | None) -> _Found:
    """What of a part may be among the best, scored in float32. `wanted` None: everything."""
    positions = _open(part, allowed)
    size = len(part.ids) if positions is None else len(positions)
    if wanted is not None and part.planes is not None and size > max(PLAIN // part.rows.shape[1], wanted):
        positions = bit_planes.likeliest(part.planes, query.singles, wanted, positions)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of a damaged file: seen in what comes out
        scores = cosine.approximate(part.rows, part.norms, query, positions)
    found = _Found(part, np.arange(size) if positions is None else positions, scores)
    if part.planes is not None and not _possible(found):
        raise _Damaged
    return found


def _possible(found: _Found) -> bool:
    """Whether these are cosines, and none of a vector of zeros: the index has none of length 0."""
    part, scores = found.part, found.scores
    if not (np.abs(scores) <= 1 + cosine.error(part.rows.shape[1])).all():
        return False
    none = found.positions[scores == 0]
    return bool(part.rows[none].any(axis=1).all())


def _exact(part: _Part, positions: Ids, query: cosine.Query, near: NDArray[np.float32]) -> NDArray[np.float64]:
    """The cosines at `positions`, of which those of a file must be near what they seemed to be."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = cosine.exact(part.rows[positions], query)
    if part.planes is not None and not (np.abs(scores - near) <= 2 * cosine.error(part.rows.shape[1])).all():
        raise _Damaged
    return scores


def _open(part: _Part, allowed: Sequence[Range] | None) -> Ids | None:
    """The positions that count, ascending; None = all."""
    if allowed is None:
        return part.alive
    ranges = np.array(allowed, np.int64)
    ids = part.ids if part.alive is None else part.ids[part.alive]
    starts = np.searchsorted(ids, ranges[:, 0])
    counts = np.searchsorted(ids, ranges[:, 1], side="right") - starts
    before = np.cumsum(counts) - counts
    at: Ids = np.arange(counts.sum()) + np.repeat(starts - before, counts)
    return at if part.alive is None else part.alive[at]


def _kth(scores: Sequence[NDArray[np.floating]], k: int) -> float:
    """The k-th highest of all; -inf when there are fewer."""
    together = np.concatenate(scores) if scores else np.empty(0)
    if len(together) < k:
        return -np.inf
    return float(np.partition(together, len(together) - k)[len(together) - k])


def _tied(hits: Sequence[DenseScored]) -> list[int]:
    """The chunks that share their score with a neighbour."""
    pairs = ((one, other) for one, other in pairwise(hits) if one.score == other.score)
    return sorted({hit.chunk for pair in pairs for hit in pair})
