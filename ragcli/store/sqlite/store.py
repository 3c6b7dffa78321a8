"""The embedded store: one SQLite file, opened here to be read (spec R41)."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.options import Bm25Settings, Condition, Settings
from ragcli.store.sqlite import documents, parents, schema, vectors
from ragcli.store.sqlite.scoring import Scored
from ragcli.store.sqlite.search import KeywordIndex
from ragcli.text import Analyzer
from ragcli.types import Chunk, EmbedderCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.sqlite.dense import DenseIndex, DenseScored


class SqliteStore:
    """An open index. Not shared between threads; close it, or use `with`."""

    def __init__(self, db: sqlite3.Connection, path: Path, settings: Settings) -> None:
        self.db = db
        self.path = path
        self.settings = settings  # as the index was built
        self._analyzer = Analyzer(settings.analyzer)
        self._keyword = KeywordIndex(db)
        self._dense: tuple[int, DenseIndex] | None = None

    @classmethod
    def open(cls, path: Path, settings: Settings, explicit: Collection[str] | None = None) -> SqliteStore:
        """The index file at `path`, guarded: `explicit` settings that it was not built with are refused (spec I36).

        Raises: IndexMissing, IndexCorrupt, IndexMismatch, IndexLocked.
        """
        db = schema.open_reader(path)
        try:
            with schema.translated(path):
                return cls(db, path, schema.guard(db, settings, explicit))
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self.db.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One state of the index for all that is read in the block, whatever a writer does meanwhile.

        Raises: IndexCorrupt where SQLite finds damage.
        """
        with schema.translated(self.path):
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                self.db.execute("ROLLBACK")

    def terms(self, text: str) -> list[str]:
        """Text as the index's analyzer cuts it."""
        return self._analyzer.terms(text)

    def keyword(
        self, terms: Sequence[str], k: int, bm25: Bm25Settings, conditions: Sequence[Condition]
    ) -> list[Scored]:
        """The best `k` chunks by BM25 among those that meet all `conditions`; equal scores by document id and index."""
        if not conditions:
            return self._keyword.search(terms, k, bm25)
        from ragcli.store.sqlite.eligible import eligible

        return self._keyword.search(terms, k, bm25, eligible(self.db, conditions))

    def keyword_scores(self, terms: Sequence[str], chunks: Sequence[int], bm25: Bm25Settings) -> list[Scored]:
        """The BM25 scores of given chunks, in their order; 0.0 of those that hold none of the terms."""
        return self._keyword.scores(terms, chunks, bm25)

    def card(self) -> EmbedderCard | None:
        """The embedder that the index was built with; None = keywords only."""
        return vectors.card(self.db)

    def without_vectors(self) -> int:
        """How many chunks wait for their vectors."""
        return vectors.missing(self.db) if self.card() else 0

    def vector_count(self) -> int:
        """How many chunks dense search can find."""
        return vectors.count(self.db)

    def nearest(
        self,
        query: NDArray[np.float32],
        k: int,
        *,
        conditions: Sequence[Condition] = (),
        exact: bool = False,
        floor: float | None = None,
    ) -> list[DenseScored]:
        """The best `k` chunks by cosine with `query` among those that meet all `conditions`; none below `floor`."""
        from ragcli.store.sqlite.eligible import eligible

        allowed = eligible(self.db, conditions) if conditions else None
        return self._vectors(query).search(query, k, allowed=allowed, exact=exact, floor=floor)

    def cosines(self, query: NDArray[np.float32], chunks: Sequence[int]) -> dict[int, float]:
        """The cosines of given chunks with `query`; those without a vector are left out."""
        return self._vectors(query).scores(query, chunks)

    def vectors(self, chunks: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """The vectors of given chunks, (dimension,), of length 1; those without one are left out."""
        dimension = vectors.dimension(self.db)
        if not dimension:
            return {}
        found, rows = self._of_dimension(dimension).vectors(chunks)
        return dict(zip(found, rows, strict=True))

    def _vectors(self, query: NDArray[np.float32]) -> DenseIndex:
        return self._of_dimension(len(query))

    def _of_dimension(self, dimension: int) -> DenseIndex:
        """For vectors of this dimension: another process may embed the index anew while it is open here."""
        if self._dense is None or self._dense[0] != dimension:
            from ragcli.store.sqlite.dense import DenseIndex

            self._dense = dimension, DenseIndex(self.db, self.path, dimension)
        return self._dense[1]

    def names(self, chunks: Sequence[int]) -> dict[int, tuple[str, int]]:
        """Chunk ids as (document id, chunk index): what orders equal scores."""
        return documents.names(self.db, chunks)

    def fetch(self, chunks: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by their ids, whole."""
        return documents.chunks(self.db, chunks)

    def keeps_parents(self) -> bool:
        """Whether the index keeps parents; some documents may still wait for theirs."""
        return parents.kept(self.db) is not None

    def parents(self, chunks: Sequence[int]) -> dict[int, Chunk]:
        """Chunk id -> its parent as a chunk, its index that among the document's parents; what has none is left out."""
        return documents.parents_of(self.db, chunks)

    def stale(self, chunks: Sequence[int]) -> Mapping[int, str | None]:
        """What became of the files behind the chunks: None, "changed" or "missing"."""
        return documents.stale(self.db, chunks)

    def size(self) -> int:
        """How many chunks can be found."""
        return self._keyword.statistics()[0]

    def known(self, terms: Collection[str]) -> set[str]:
        """Those of the terms that some chunk has."""
        return {term.text for term in self._keyword.look_up(list(terms)) if term.df}

    def idf(self, terms: Collection[str]) -> Mapping[str, float]:
        """The idf of each distinct term, ln(1 + (N - df + 0.5) / (df + 0.5)); of one that no chunk has, df is 0."""
        return {term.text: term.idf for term in self._keyword.look_up(list(terms))}

    def admitted(self, conditions: Sequence[Condition]) -> int:
        """How many chunks meet all `conditions`."""
        from ragcli.store.sqlite.eligible import eligible

        return sum(last - first + 1 for first, last in eligible(self.db, conditions) or ())

    def kinds(self) -> Mapping[str, Collection[str]]:
        """The metadata keys there are, with the kinds of their values."""
        from ragcli.store.sqlite.eligible import kinds

        return kinds(self.db)
