"""Vectors of chunks in SQLite, the truth about them: written with their documents, found again by text (spec I31, I34).

A vector is float16, little-endian, of length 1 before it was rounded: half the bytes of float32, and cosines right to
about 0.0005. `hash` is that of the text as it was embedded: equal text is embedded once. What a deleted document leaves
behind is spare until the run that deleted it is complete, so that a changed or moved file embeds only what is new.
Searches nothing (`dense` does), computes no vector.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from json import dumps
from typing import TYPE_CHECKING

import msgspec

from ragcli.types import EmbedderCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLES = (
    """CREATE TABLE vectors(
  chunk INTEGER PRIMARY KEY,
  hash BLOB NOT NULL,              -- blake2b-16 of the embedded text
  vector BLOB NOT NULL             -- float16 (dimension,)
)""",
    "CREATE INDEX vectors_by_hash ON vectors(hash)",
    "CREATE TABLE spare_vectors(hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID",
    # documents some of whose chunks have no vector yet; `reason`: why the last try failed
    "CREATE TABLE unembedded(document INTEGER PRIMARY KEY, reason TEXT)",
)
# vector_count is kept exact; vectors_state is another random number after each change of `vectors` (a count could come
# to the same number twice, after a power cut took the last transactions); vectors_epoch grows when all are replaced
FEW = 2_000  # so many vectors are read from SQLite in milliseconds: no side file is made of them
COUNTERS = {"vector_count": 0, "vectors_state": 0, "vectors_epoch": 0}

_NEW_STATE = "UPDATE meta SET value = random() WHERE key = 'vectors_state'"

Row = tuple[int, bytes, bytes]  # chunk id, hash, vector


class Pending(msgspec.Struct, frozen=True):
    """A chunk that waits for its vector: the text to embed, and that text's hash."""

    chunk: int
    document: int
    text: str
    hash: bytes


def card(db: sqlite3.Connection) -> EmbedderCard | None:
    """The embedder that the index is built with; None = keywords only."""
    row = db.execute("SELECT value FROM meta WHERE key = 'embedder'").fetchone()
    return msgspec.json.decode(row[0], type=EmbedderCard) if row and row[0] else None


def set_card(db: sqlite3.Connection, embedder: EmbedderCard | None) -> None:
    """From now on the index is built with this one; inside the caller's transaction."""
    value = msgspec.json.encode(embedder).decode() if embedder else None
    db.execute("INSERT OR REPLACE INTO meta VALUES ('embedder', ?)", (value,))


def missing(db: sqlite3.Connection) -> int:
    """How many chunks have no vector, in an index that is built with an embedder."""
    return total_chunks(db) - count(db)


def count(db: sqlite3.Connection) -> int:
    """How many chunks have a vector."""
    return _counter(db, "vector_count")


def dimension(db: sqlite3.Connection) -> int:
    """How many numbers a stored vector has; 0 = there is none."""
    row = db.execute("SELECT length(vector) FROM vectors LIMIT 1").fetchone()
    return row[0] // 2 if row else 0


def total_chunks(db: sqlite3.Connection) -> int:
    """How many chunks there are."""
    return _counter(db, "chunk_count")


def _counter(db: sqlite3.Connection, key: str) -> int:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return int(row[0]) if row else 0


def digest(text: str) -> bytes:
    """By which equal text is found again."""
    from hashlib import blake2b

    return blake2b(text.encode(), digest_size=16).digest()


def packed(vector: NDArray[np.float32]) -> bytes:
    """A vector as it is stored."""
    return vector.astype("<f2").tobytes()


def known(db: sqlite3.Connection, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """Vectors of texts that were embedded before, also of those whose documents are gone."""
    found: dict[bytes, bytes] = {}
    for one in hashes:  # SQLite has no array of blobs to bind, and a look-up costs 5 µs
        row = db.execute(_KNOWN, (one,)).fetchone()
        if row:
            found[one] = row[0]
    return found


_KNOWN = """
SELECT vector FROM vectors WHERE hash = ?1 UNION ALL SELECT vector FROM spare_vectors WHERE hash = ?1 LIMIT 1
"""


# ---------------------------------------------------------------------------------------------------------- writing


class VectorWriter:
    """What one transaction changes in `vectors`, and the counters in step with it. `end` is the last thing."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._change = 0
        self._touched = False
        self.expects = card(db) is not None  # a new document waits for its vectors

    def put(self, rows: Sequence[Row]) -> None:
        """Vectors of chunks; of one that is gone by now, or has a vector, none is taken."""
        ids = dumps([row[0] for row in rows])
        alive = {
            row[0]
            for row in self._db.execute(
                "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?1)) "
                "AND id NOT IN (SELECT chunk FROM vectors WHERE chunk IN (SELECT value FROM json_each(?1)))",
                (ids,),
            )
        }
        kept = [row for row in rows if row[0] in alive]
        self._db.executemany("INSERT INTO vectors VALUES (?, ?, ?)", kept)
        self._note(len(kept))

    def await_(self, documents: Sequence[int]) -> None:
        """These documents have chunks without vectors."""
        self._db.executemany("INSERT OR IGNORE INTO unembedded(document) VALUES (?)", [(one,) for one in documents])

    def settle(self, documents: Sequence[tuple[int, str | None]]) -> None:
        """What became of documents that waited: all of their chunks have vectors (None), or why not."""
        done = [(number,) for number, reason in documents if reason is None]
        failed = [(reason, number) for number, reason in documents if reason is not None]
        self._db.executemany("DELETE FROM unembedded WHERE document = ?", done)
        self._db.executemany("UPDATE unembedded SET reason = ? WHERE document = ?", failed)

    def retire(self, document: int, first: int, last: int) -> None:
        """A document is deleted, whose chunks have these ids: their vectors become spare."""
        self._db.execute("DELETE FROM unembedded WHERE document = ?", (document,))
        span = (first, last)
        self._db.execute(
            "INSERT OR IGNORE INTO spare_vectors SELECT hash, vector FROM vectors WHERE chunk BETWEEN ? AND ?", span
        )
        self._note(-self._db.execute("DELETE FROM vectors WHERE chunk BETWEEN ? AND ?", span).rowcount)

    def _note(self, change: int) -> None:
        self._change += change
        self._touched = self._touched or change != 0

    def end(self) -> None:
        """Bring the counters in step."""
        if self._touched:
            self._db.execute("UPDATE meta SET value = value + ? WHERE key = 'vector_count'", (self._change,))
            self._db.execute(_NEW_STATE)


def start_over(db: sqlite3.Connection, embedder: EmbedderCard | None) -> None:
    """Drop all vectors; every document waits for those of `embedder` (None: for none). In the caller's transaction."""
    db.execute("DELETE FROM vectors")
    db.execute("DELETE FROM spare_vectors")
    db.execute("DELETE FROM unembedded")
    if embedder is not None:
        db.execute("INSERT INTO unembedded(document) SELECT id FROM documents WHERE chunk_count > 0")
    db.execute("UPDATE meta SET value = 0 WHERE key = 'vector_count'")
    db.execute("UPDATE meta SET value = value + 1 WHERE key IN ('vectors_epoch', 'generation')")
    db.execute(_NEW_STATE)
    set_card(db, embedder)


def drop_spare(db: sqlite3.Connection) -> None:
    """The run is complete: nothing will ask for them again."""
    if db.execute("SELECT 1 FROM spare_vectors LIMIT 1").fetchone():
        db.execute("DELETE FROM spare_vectors")


def waiting(db: sqlite3.Connection, after: int, most: int) -> list[int]:
    """The next documents that wait for vectors, those with row ids above `after`."""
    rows = db.execute("SELECT document FROM unembedded WHERE document > ? ORDER BY document LIMIT ?", (after, most))
    return [row[0] for row in rows]


def reasons(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """(document id, why it has no vectors) of the documents whose embedding failed."""
    return db.execute(
        "SELECT document_id, reason FROM unembedded u JOIN documents d ON d.id = u.document "
        "WHERE reason IS NOT NULL ORDER BY document_id"
    ).fetchall()


def needs_side_file(db: sqlite3.Connection, index: str | os.PathLike[str]) -> bool:
    """Whether there is a side file to keep in step, or enough vectors to make one of; without importing numpy."""
    return count(db) > FEW or os.path.exists(side_file(index))  # noqa: PTH110


def side_file(index: str | os.PathLike[str]) -> str:
    """Where the memory-mapped copy of the vectors lies: beside the index, with the ending .vec."""
    path = os.fspath(index)
    root, ending = os.path.splitext(path)  # noqa: PTH122
    return f"{root if ending == '.db' else path}.vec"
