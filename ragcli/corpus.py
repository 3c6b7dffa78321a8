"""What stages may ask for (types.Corpus), answered from an open index: vectors, the query's vector, parents, tokens.

Nothing is computed, opened or fetched before it is asked for, and each thing once a call. What could not be had when
the call was made ready raises its error here, where a stage asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from ragcli.errors import IndexMismatch, ModelMissing, RagcliError, RemoteError
from ragcli.types import Chunk, Embedder, Hit, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.arms import QueryVector
    from ragcli.store.sqlite.store import SqliteStore
    from ragcli.tokens import Tokenizer

T = TypeVar("T")
Key = tuple[str, int]  # (document id, chunk index)

ADD_PARENTS = "cut them from the stored text: ragcli ingest --parents"


class Promise(Generic[T]):
    """A value that is made when it is first asked for, or the error of making it: once, however often it is asked."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._error: Exception | None = None

    def get(self) -> T:
        """The value. Raises: what making it raised."""
        if self._error is not None:
            raise self._error
        if not self._made:
            try:
                self._made.append(self._make())
            except (RagcliError, OSError) as error:
                self._error = error
                raise
        return self._made[0]

    @property
    def made(self) -> T | None:
        """The value, where it was made."""
        return self._made[0] if self._made else None

    def prepare(self) -> None:
        """Make it now; an error waits for whoever asks."""
        try:
            self.get()
        except (RagcliError, OSError):
            return


class IndexCorpus:
    """The corpus of one call. `numbers`: chunk ids by key, of every hit that a stage may see.

    `vector`: the query's vector; `embedder` and `tokenizer` are opened when a stage needs them.
    """

    def __init__(
        self,
        store: SqliteStore,
        numbers: Mapping[Key, int],
        *,
        vector: Promise[QueryVector],
        embedder: Promise[Embedder],
        tokenizer: Promise[Tokenizer],
    ) -> None:
        self._store, self._numbers = store, numbers
        self._vector, self._embedder, self._tokenizer = vector, embedder, tokenizer
        self.steps: list[Step] = []  # of what was computed because a stage asked

    def now(self) -> datetime:
        """The time of day."""
        return datetime.now(UTC)

    def query_vector(self) -> NDArray[np.float32]:
        """That of the query."""
        vector = self._vector.get()
        if vector.step is None:
            vector.result()
            assert vector.step is not None
            self.steps.append(vector.step)
        return vector.result()

    def vectors(self, hits: Sequence[Hit]) -> NDArray[np.float32]:
        """Those of the hits' chunks: the stored ones; what has none is embedded now, as ingest would have."""
        import numpy as np

        if not hits:
            return np.zeros((0, 0), np.float32)
        numbers = [self._numbers[hit.chunk.document_id, hit.chunk.index] for hit in hits]
        found = self._store.vectors(numbers)
        missing = {number: hit.chunk for number, hit in zip(numbers, hits, strict=True) if number not in found}
        if missing:
            found = {**found, **self._made(missing, None if not found else len(next(iter(found.values()))))}
        return np.stack([found[number] for number in numbers])

    def _made(self, missing: Mapping[int, Chunk], dimension: int | None) -> Mapping[int, NDArray[np.float32]]:
        """Vectors of chunks without one; zeros where there is no embedder and others (of `dimension`) can serve.

        Raises: ModelMissing, RemoteError, IndexMismatch where there are no others.
        """
        import numpy as np

        from ragcli.chunk.annotate import passage  # not on the way of a query

        try:
            rows = self.embedded([passage(chunk) for chunk in missing.values()])
        except (ModelMissing, RemoteError, IndexMismatch):
            if dimension is None:
                raise
            rows = np.zeros((len(missing), dimension), np.float32)
        return dict(zip(missing, rows, strict=True))

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Those of texts, in one batch."""
        return self._embedder.get().passages(texts).vectors

    def parents(self, hits: Sequence[Hit]) -> Sequence[Chunk]:
        """The parent of each hit's chunk."""
        if not self._store.keeps_parents():
            raise IndexMismatch("the index keeps no parents", ADD_PARENTS)
        numbers = [self._numbers[hit.chunk.document_id, hit.chunk.index] for hit in hits]
        found = self._store.parents(numbers)
        lacking = [hit.chunk for hit, number in zip(hits, numbers, strict=True) if number not in found]
        if lacking:
            first = f"{lacking[0].document_id}#{lacking[0].index}"
            raise RagcliError(f"{len(lacking)} of {len(hits)} chunks have no parent yet, {first} for one", ADD_PARENTS)
        return [found[number] for number in numbers]

    def tokens(self, text: str) -> int:
        """How many tokens the text has; estimated where the tokenizer can't be had."""
        from ragcli import tokens

        try:
            return self._tokenizer.get().count(text)
        except (ModelMissing, RemoteError):
            return tokens.estimate(text)

    def tokens_are_estimated(self) -> str:
        """Why, where they are."""
        try:
            self._tokenizer.get()
        except (ModelMissing, RemoteError) as error:
            return error.message
        return ""
