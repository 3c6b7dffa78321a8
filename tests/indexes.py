"""What an index holds, for tests: everything that must be the same however the index came about."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ragcli.ingest import ingest_paths
from ragcli.options import Bm25Settings, ModelsSettings, Settings
from ragcli.store.sqlite import documents, parents, schema, tags
from ragcli.store.sqlite.check import check
from ragcli.store.sqlite.store import SqliteStore
from ragcli.types import IngestOptions, IngestReport


def keywords(**sections: Any) -> Settings:
    """Settings of a test that is not about vectors: none are made."""
    return Settings(models=ModelsSettings(embedder="none"), **sections)


KEYWORDS = keywords()


def index_of(folder: Path) -> Path:
    return folder / ".ragcli" / "index.db"


def take_in(index: Path, *paths: Path | str, settings: Settings = KEYWORDS, **options: Any) -> IngestReport:
    return ingest_paths([str(path) for path in paths], settings, index, IngestOptions(**options))


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def rows(index: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(index)) as db:
        return db.execute(query, values).fetchall()


def ids(index: Path) -> list[str]:
    return [row[0] for row in rows(index, "SELECT document_id FROM documents ORDER BY document_id")]


def faults(index: Path) -> list[str]:
    with closing(schema.open_reader(index)) as db:
        return check(db)


def content(index: Path) -> dict[str, tuple[Any, ...]]:
    """Per document: its text, metadata and chunks, free of row ids, of times and of what depends on the order."""
    found: dict[str, tuple[Any, ...]] = {}
    with closing(schema.open_reader(index)) as db:
        for number, name, title, metadata, first, count in db.execute(
            "SELECT id, document_id, title, metadata, first_chunk, chunk_count FROM documents"
        ):
            chunks = documents.chunks(db, range(first, first + count))
            assert len(chunks) == count
            found[name] = (title, tags.decode(metadata), documents.text_of(db, number), list(chunks.values()))
    return found


def parents_of(index: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Per document, its parents' rows: start, end, index, lines, pages, heading, level, breadcrumb."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with closing(schema.open_reader(index)) as db:
        for number, name in db.execute("SELECT id, document_id FROM documents").fetchall():
            found[name] = parents.of_document(db, number)
    return found


def made_version_2(index: Path) -> None:
    """Take away what version 3 brought."""
    with closing(sqlite3.connect(index)) as db:
        db.executescript(
            "DROP TABLE parents; DROP TABLE unparented; DROP TABLE outlines;"
            "DELETE FROM meta WHERE key IN ('parents', 'outlines_from'); PRAGMA user_version = 2;"
        )


def search(index: Path, words: str, k: int = 20) -> list[tuple[str, int, float]]:
    """(document id, chunk index, score to 9 digits), best first."""
    store = SqliteStore.open(index, Settings())
    with closing(store):
        scored = store.keyword(store.terms(words), k, Bm25Settings(), ())
        chunks = store.fetch([hit.chunk for hit in scored])
        return [(chunks[hit.chunk].document_id, chunks[hit.chunk].index, round(hit.score, 9)) for hit in scored]


def found(index: Path, words: str) -> set[str]:
    return {name for name, _, _ in search(index, words)}


def same(one: Path, other: Path, queries: Sequence[str] = ()) -> None:
    """Assert that both indexes hold the same documents and answer the same."""
    assert content(one) == content(other)
    for query in queries:
        assert search(one, query) == search(other, query)


def vectors_of(index: Path) -> dict[tuple[str, int], tuple[bytes, bytes]]:
    """(document id, chunk index) -> hash of the embedded text, and the vector."""
    query = (
        'SELECT document_id, c."index", v.hash, v.vector FROM vectors v JOIN chunks c ON c.id = v.chunk '
        "JOIN documents d ON d.id = c.document"
    )
    return {(name, number): (digest, vector) for name, number, digest, vector in rows(index, query)}


def halves(vector: Sequence[float]) -> list[float]:
    """The numbers as float16 holds them."""
    return [struct.unpack("<e", struct.pack("<e", number))[0] for number in vector]
