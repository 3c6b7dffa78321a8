"""How texts are judged by an open index (types.Lens): its terms, its idf, its embedder. A text is embedded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragcli.corpus import Promise
from ragcli.errors import IndexMismatch, ModelMissing, RagcliError, RemoteError
from ragcli.types import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.store.sqlite.store import SqliteStore


class IndexLens:
    """The lens of one call. `embedder`: None of an index without vectors."""

    def __init__(self, store: SqliteStore, embedder: Promise[Embedder] | None) -> None:
        self._store, self._embedder = store, embedder
        self._known: dict[str, NDArray[np.float32]] = {}
        self._problem = ""

    def terms(self, text: str) -> list[str]:
        """As the index's analyzer cuts it."""
        return self._store.terms(text)

    def idf(self, terms: Sequence[str]) -> Mapping[str, float]:
        """Of each distinct term."""
        return self._store.idf(terms)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Rows of the texts, in their order; None where there is no embedder."""
        import numpy as np

        embedder = self._opened()
        if embedder is None or not texts:
            return None
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        try:
            found = embedder.passages(new) if new else None
        except RemoteError as error:
            self._problem = error.message
            return None
        if found is not None:
            self._known.update(zip(new, found.vectors, strict=True))
            for reason in list(found.problems.values())[:1]:
                self._problem = f"{len(found.problems)} of {len(new)} sentences have no vector: {reason}"
        return np.stack([self._known[text] for text in texts])

    def query_vector(self, text: str) -> NDArray[np.float32] | None:
        """That of the query; None where there is no embedder."""
        embedder = self._opened()
        try:
            return None if embedder is None else embedder.query(text)
        except RagcliError as error:
            self._problem = error.message
            return None

    def problem(self) -> str:
        """Why texts could not be embedded."""
        return self._problem

    def _opened(self) -> Embedder | None:
        if self._embedder is None:
            return None
        try:
            return self._embedder.get()
        except (ModelMissing, RemoteError, IndexMismatch) as error:
            self._problem = error.message
            return None
