"""An index with vectors for tests, and beside it what must be in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from ragcli.store.sqlite import schema, vectors
from ragcli.types import EmbedderCard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class Vectored:
    """An index file whose chunks have vectors; `alive`: chunk id -> the vector as it is stored."""

    def __init__(self, folder: Path, dimension: int, made: str = "2026-01-01T00:00:00Z") -> None:
        self.path, self.dimension = folder / ".ragcli" / "index.db", dimension
        self.side = Path(vectors.side_file(self.path))
        self.db = schema.open_writer(self.path)
        self.alive: dict[int, list[float]] = {}
        self.names: dict[int, tuple[str, int]] = {}
        self.next = 1
        with schema.transaction(self.db):
            vectors.set_card(self.db, EmbedderCard(name="test", fingerprint="0", dimension=dimension))
            schema.set_meta(self.db, created_at=made, analyzer="{}", chunking="{}")

    def __enter__(self) -> Vectored:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.db.close()

    def add(self, rows: Floats, chunks: Sequence[int] | None = None) -> list[int]:
        """Vectors (n, dimension), none of them all zeros, as documents of one chunk; their ids, new if not given."""
        ids = list(chunks) if chunks is not None else list(range(self.next, self.next + len(rows)))
        self.next = max([self.next, *(one + 1 for one in ids)])
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        units = (rows / lengths).astype(np.float32)
        with schema.transaction(self.db):
            for chunk, row in zip(ids, units, strict=True):
                self._put(chunk, row)
            self._count(len(ids))
        return ids

    def _put(self, chunk: int, row: Floats) -> None:
        name = f"d{10**9 - chunk}"  # against the order of ids, so that ties are seen to break by name
        self.names[chunk] = (name, 0)
        self.alive[chunk] = row.astype("<f2").astype(np.float64).tolist()
        self.db.execute(
            "INSERT INTO documents(id, document_id, source, title, name, format, ingested_at, hash, first_line, "
            "characters, first_chunk, chunk_count) VALUES (?1, ?2, 0, '', '', 'text', 0, x'', 1, 0, ?1, 1)",
            (chunk, name),
        )
        self.db.execute(
            'INSERT INTO chunks(id, document, "index", start, "end", start_line, end_line, heading_level, length) '
            "VALUES (?1, ?1, 0, 0, 0, 1, 1, 0, 0)",
            (chunk,),
        )
        text = vectors.digest(f"{chunk} {row.tobytes().hex()}")
        self.db.execute("INSERT INTO vectors VALUES (?, ?, ?)", (chunk, text, vectors.packed(row)))

    def delete(self, chunks: Collection[int]) -> None:
        with schema.transaction(self.db):
            for chunk in chunks:
                del self.alive[chunk]
                for table, column in (("vectors", "chunk"), ("chunks", "id"), ("documents", "id")):
                    self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (chunk,))
            self._count(-len(chunks))

    def replace(self, rows: Mapping[int, Floats]) -> None:
        """Other vectors for all chunks, whose texts stay the same: what embedding anew does."""
        with schema.transaction(self.db):
            for chunk, row in rows.items():
                unit = (row / np.linalg.norm(row)).astype(np.float32)
                self.alive[chunk] = unit.astype("<f2").astype(np.float64).tolist()
                self.db.execute("UPDATE vectors SET vector = ? WHERE chunk = ?", (vectors.packed(unit), chunk))
            self.db.execute("UPDATE meta SET value = value + 1 WHERE key IN ('vectors_state', 'vectors_epoch')")

    def _count(self, change: int) -> None:
        self.db.execute("UPDATE meta SET value = value + ? WHERE key = 'vector_count'", (change,))
        self.db.execute("UPDATE meta SET value = value + 1 WHERE key = 'vectors_state'")

    def reader(self) -> sqlite3.Connection:
        return schema.open_reader(self.path)


def clustered(count: int, dimension: int, seed: int = 0, topics: int = 30) -> Floats:
    """Vectors around a few others, and all of them around a mean that is not 0."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((topics, dimension))
    rows = centres[random.integers(0, topics, count)] + 0.3 + 0.7 * random.standard_normal((count, dimension))
    found: Floats = rows.astype(np.float32)
    return found
