"""The arms of retrieval: each finds its best chunks, and tells its true score of any other (spec R3, R4, R6).

An arm works on chunk ids and on its own scale; making one ranking of several is `fuse`'s work. Nothing of an arm is
computed before it is asked for, and a query's vector once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ragcli.options import Bm25Settings, RetrievalOptions
from ragcli.types import Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.sqlite.store import SqliteStore
    from ragcli.types import Embedder

Scores = list[tuple[int, float]]
T = TypeVar("T")


class Arm(Protocol):
    """One way to find chunks. `kind` is what its scores are called, `size` how many chunks it can find."""

    name: str
    kind: str
    size: int
    steps: list[Step]
    warnings: list[str]

    def best(self, k: int) -> Scores:
        """The best `k` (chunk id, score), best first; equal scores in the order of their names."""

    def scores(self, chunks: Sequence[int]) -> Mapping[int, float]:
        """The arm's true scores of these chunks; those it knows nothing of are left out."""

    def parts(self, chunk: int) -> Mapping[str, float]:
        """The named parts of the score of a chunk that was scored before; they add up to it."""

    def options(self) -> Mapping[str, object]:
        """What it ran with, for the trace."""


class KeywordArm:
    """BM25 over the persisted postings."""

    name, kind = "bm25", "bm25"

    def __init__(self, store: SqliteStore, terms: Sequence[str], options: RetrievalOptions, bm25: Bm25Settings) -> None:
        self._store, self._terms, self._options, self._bm25 = store, terms, options, bm25
        self._parts: dict[int, Mapping[str, float]] = {}
        self.size = store.size()
        self.steps: list[Step] = []
        self.warnings: list[str] = []

    def best(self, k: int) -> Scores:
        found = self._store.keyword(self._terms, k, self._bm25, self._options.metadata_filter)
        self._parts.update((hit.chunk, hit.parts) for hit in found)
        return [(hit.chunk, hit.score) for hit in found]

    def scores(self, chunks: Sequence[int]) -> Mapping[int, float]:
        found = self._store.keyword_scores(self._terms, chunks, self._bm25)
        self._parts.update((hit.chunk, hit.parts) for hit in found)
        return {hit.chunk: hit.score for hit in found}

    def parts(self, chunk: int) -> Mapping[str, float]:
        return self._parts.get(chunk, {})

    def options(self) -> Mapping[str, object]:
        return {"k1": self._bm25.k1, "b": self._bm25.b, "terms": tuple(dict.fromkeys(self._terms))}


class QueryVector:
    """The query's vector, computed in a thread of its own from the moment this is made.

    Loading a model takes as long as all the rest of a one-shot query. `step` is there once somebody waited for it.
    """

    def __init__(self, embedder: Embedder, query: str) -> None:
        self.model = embedder.card.name
        self.step: Step | None = None
        self._vector = InBackground(lambda: embedder.query(query))

    def result(self) -> NDArray[np.float32]:
        """The vector, (dimension,), of length 1. Raises: what the embedder raised."""
        started = perf_counter()
        vector = self._vector.result()
        if self.step is None:
            self.step = Step("embedding", 1, 1, perf_counter() - started, {"model": self.model})
        return vector


class DenseArm:
    """Cosine of the query's vector with those of the chunks. `best` raises what the embedder raised."""

    name, kind = "dense", "cosine"

    def __init__(self, store: SqliteStore, vector: QueryVector, options: RetrievalOptions) -> None:
        self._store, self._options, self._vector = store, options, vector
        self.size = store.vector_count()
        self.steps: list[Step] = []
        self.warnings: list[str] = []

    def best(self, k: int) -> Scores:
        found = self._store.nearest(
            self._query(), k, conditions=self._options.metadata_filter, exact=self._options.exact,
            floor=self._options.min_score,
        )  # fmt: skip
        if not found:
            self._warn_of_floor()
        return [(hit.chunk, hit.score) for hit in found]

    def _warn_of_floor(self) -> None:
        """A floor that was made for another scale leaves nothing (spec R4): say so, and what there was."""
        nearest = self._store.nearest(self._query(), 1, conditions=self._options.metadata_filter)
        if nearest and not self.warnings:
            self.warnings.append(
                f"retrieval.min_score = {self._options.min_score:g} left nothing of the dense arm: it is a cosine, "
                f"and the best one is {nearest[0].score:.3f}"
            )

    def scores(self, chunks: Sequence[int]) -> Mapping[int, float]:
        return self._store.cosines(self._query(), chunks)

    def parts(self, chunk: int) -> Mapping[str, float]:  # noqa: ARG002 - a cosine has no parts
        return {}

    def options(self) -> Mapping[str, object]:
        return {"model": self._vector.model, "exact": self._options.exact, "min_score": self._options.min_score}

    def _query(self) -> NDArray[np.float32]:
        vector = self._vector.result()
        if not self.steps and self._vector.step is not None:
            self.steps.append(self._vector.step)
        return vector


class InBackground(Generic[T]):
    """A value that is being computed in a thread. `concurrent.futures` would cost more to import than it saves."""

    def __init__(self, compute: Callable[[], T]) -> None:
        import threading

        self._found: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(compute,), daemon=True)
        self._thread.start()

    def _run(self, compute: Callable[[], T]) -> None:
        try:
            self._found.append(compute())
        except BaseException as error:  # raised again where the value is asked for
            self._error = error

    def result(self) -> T:
        """The value, when it is there; raises what computing it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]
