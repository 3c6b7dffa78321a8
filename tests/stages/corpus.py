"""A corpus of a few hand-made vectors and parents, and hits to rank, for the tests of stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from ragcli.errors import IndexMismatch, RagcliError
from ragcli.types import Chunk, Hit, Ranking

Key = tuple[str, int]


class FakeCorpus:
    """Answers from what it was given. Without `vectors` there are none, which is an error as in a real index.

    Each word is a token unless `count` says other. `embed` makes the vector of a text; it keeps the batches that came.
    """

    def __init__(
        self,
        vectors: Mapping[Key, Sequence[float]] | None = None,
        query: Sequence[float] = (),
        parents: Mapping[Key, Chunk] | None = None,
        *,
        count: Callable[[str], int] = lambda text: len(text.split()),
        estimated: str = "",
        embed: Callable[[str], Sequence[float]] | None = None,
    ) -> None:
        self._vectors, self._query, self._parents = vectors, query, parents
        self._count, self._estimated, self._embed = count, estimated, embed
        self.batches: list[list[str]] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def query_vector(self) -> NDArray[np.float32]:
        if not len(self._query):
            raise IndexMismatch("the index has no vectors")
        return np.asarray(self._query, np.float32)

    def vectors(self, hits: Sequence[Hit]) -> NDArray[np.float32]:
        if self._vectors is None:
            raise IndexMismatch("the index has no vectors")
        return np.asarray([self._vectors[key(hit)] for hit in hits], np.float32)

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._embed is None:
            raise RagcliError("the embedder is down")
        self.batches.append(list(texts))
        return np.asarray([self._embed(text) for text in texts], np.float32)

    def parents(self, hits: Sequence[Hit]) -> Sequence[Chunk]:
        if self._parents is None:
            raise IndexMismatch("the index keeps no parents")
        lacking = [key(hit) for hit in hits if key(hit) not in self._parents]
        if lacking:
            raise RagcliError(f"{lacking[0]} has no parent yet")
        return [self._parents[key(hit)] for hit in hits]

    def tokens(self, text: str) -> int:
        return self._count(text)

    def tokens_are_estimated(self) -> str:
        return self._estimated


def key(hit: Hit) -> Key:
    """What a hit is known by."""
    return hit.chunk.document_id, hit.chunk.index


def chunk(document: str, index: int = 0, text: str = "", **fields: object) -> Chunk:
    """A chunk of one line."""
    words = text or f"text of {document} {index}"
    made = {
        "start": 0, "end": len(words), "start_line": 1, "end_line": 1, "path": f"/d/{document}", **fields,
    }  # fmt: skip
    return Chunk(document_id=document, index=index, text=words, **made)  # type: ignore[arg-type]


def hit(document: str, index: int = 0, score: float = 1.0, kind: str = "relative", text: str = "") -> Hit:
    """A hit of that chunk."""
    return Hit(chunk=chunk(document, index, text), score=score, score_kind=kind)


def ranking(*documents: str, kind: str = "relative") -> Ranking:
    """Hits of these documents, best first, scores 1, 1/2, 1/3 …"""
    return Ranking(tuple(hit(name, score=1 / rank, kind=kind) for rank, name in enumerate(documents, 1)))


def order(found: Ranking) -> list[str]:
    """The documents of the hits."""
    return [one.chunk.document_id for one in found.hits]


def reasons(found: Ranking) -> dict[str, str]:
    """Why each dropped document went."""
    return {drop.hit.chunk.document_id: drop.reason for drop in found.dropped}
