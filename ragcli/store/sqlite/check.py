"""Whether the index is what it says it is: the file, every document, every count (spec I35; `inspect --check`).

Reads everything once; changes nothing. The postings check themselves (`postings_check`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import Any

from ragcli.chunk.annotate import headed
from ragcli.store.sqlite import parents, postings_check, tags, vectors
from ragcli.store.sqlite.documents import BLOCK, BLOCKS, Terms, context_of, text_of
from ragcli.store.sqlite.schema import stored_settings

MOST = 100  # faults that are listed; a damaged file has them by the thousand

# What, and a query that counts how often it is so.
COUNTED = (
    ("chunks of no document", "SELECT count(*) FROM chunks WHERE document NOT IN (SELECT id FROM documents)"),
    ("documents of no source", "SELECT count(*) FROM documents WHERE source NOT IN (SELECT id FROM sources)"),
    (
        "blocks of text of no document",
        f"SELECT count(*) FROM text_blocks WHERE id / {BLOCKS} NOT IN (SELECT id FROM documents)",  # noqa: S608
    ),
    ("metadata of no document", "SELECT count(*) FROM metadata WHERE document NOT IN (SELECT id FROM documents)"),
    (
        "documents whose id is to be given again",
        "SELECT count(*) FROM documents WHERE id >= (SELECT value FROM meta WHERE key = 'next_document')",
    ),
)
COUNTED_VECTORS = (
    ("vectors of no chunk", "SELECT count(*) FROM vectors WHERE chunk NOT IN (SELECT id FROM chunks)"),
    (
        "documents that wait for vectors and are not there",
        "SELECT count(*) FROM unembedded WHERE document NOT IN (SELECT id FROM documents)",
    ),
    (
        "chunks without a vector whose document does not wait for any",
        "SELECT count(*) FROM chunks WHERE (SELECT value FROM meta WHERE key = 'embedder') IS NOT NULL "
        "AND document NOT IN (SELECT document FROM unembedded) AND id NOT IN (SELECT chunk FROM vectors)",
    ),
    (
        "vectors that are not of the embedder's dimension",
        "SELECT count(*) FROM vectors WHERE length(vector) IS NOT 2 * "
        "(SELECT json_extract(value, '$.dimension') FROM meta WHERE key = 'embedder')",
    ),
)
COUNTED_PARENTS = (
    ("parents of no document", "SELECT count(*) FROM parents WHERE document NOT IN (SELECT id FROM documents)"),
    ("outlines of no document", "SELECT count(*) FROM outlines WHERE document NOT IN (SELECT id FROM documents)"),
    (
        "documents that wait for parents and are not there",
        "SELECT count(*) FROM unparented WHERE document NOT IN (SELECT id FROM documents)",
    ),
    (
        "documents that wait for parents and have some",
        "SELECT count(*) FROM unparented WHERE document IN (SELECT document FROM parents)",
    ),
    (
        "parents, or documents that wait for them, in an index that keeps none",
        "SELECT (SELECT count(*) FROM parents) + (SELECT count(*) FROM unparented) "
        "WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'parents')",
    ),
)
COUNTERS = (
    ("chunk_count", "SELECT count(*) FROM chunks"),
    ("chunk_count", "SELECT ifnull(sum(chunk_count), 0) FROM documents"),
    ("term_count", "SELECT ifnull(sum(length), 0) FROM chunks"),
    ("vector_count", "SELECT count(*) FROM vectors"),
)


def check(db: sqlite3.Connection) -> list[str]:
    """Every fault found, one line each; [] for a sound index.

    Raises: sqlite3.DatabaseError where the file is too damaged to be looked through.
    """
    damage = [str(row[0]) for row in db.execute(f"PRAGMA quick_check({MOST})") if row[0] != "ok"]
    if damage:
        return damage
    if db.in_transaction:
        return [*_counted(db), *_side_file(db), *_documents(db), *postings_check.check(db)][:MOST]
    db.execute("BEGIN")  # one state of the index for all queries, whatever a writer does meanwhile
    try:
        return check(db)
    finally:
        db.execute("COMMIT")


def _counted(db: sqlite3.Connection) -> Iterator[str]:
    for what, query in (*COUNTED, *COUNTED_VECTORS, *COUNTED_PARENTS):
        (number,) = db.execute(query).fetchone() or (0,)
        if number:
            yield f"{number} {what}"
    for key, query in COUNTERS:
        (said,) = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        (found,) = db.execute(query).fetchone()
        if said != found:
            yield f"{key} says {said}, counted {found}"


def _side_file(db: sqlite3.Connection) -> Iterator[str]:
    """The copy of the vectors beside the index, where it says that it is up to date (any other is not searched)."""
    card, index = vectors.card(db), db.execute("PRAGMA database_list").fetchone()[2]
    path = vectors.side_file(index)
    if card is None or not index or not os.path.exists(path):  # noqa: PTH110
        return
    from ragcli.store.sqlite import vector_file

    if vector_file.differs(db, path, card.dimension):
        yield f"{os.path.basename(path)} does not show the index's vectors: delete it, it is made again"  # noqa: PTH119


def _documents(db: sqlite3.Connection) -> Iterator[str]:
    from ragcli.text import Analyzer

    terms = Analyzer(stored_settings(db)[0]).terms
    columns = "id, document_id, title, metadata, name, characters, first_chunk, chunk_count"
    for row in db.execute(f"SELECT {columns} FROM documents ORDER BY id"):  # noqa: S608 - a constant
        number, document_id, title, metadata, name, *shape = row
        text = text_of(db, number)
        rows = _rows(db, number, *shape[1:])
        faults = (
            *_text(db, number, text, shape[0]), *_number(rows, *shape[1:]), *_chunks(rows, title, text, terms),
            *_parents(db, number, rows, text),
        )  # fmt: skip
        yield from (f"{document_id}: {fault}" for fault in (*faults, *_hashes(db, rows, title, name, text)))
        if _tags_of(db, metadata, number) != len(tags.rows(tags.decode(metadata))):
            yield f"{document_id}: its metadata can't be found by filters"


def _tags_of(db: sqlite3.Connection, metadata: str | None, number: int) -> int:
    """How many of the document's metadata rows are there."""
    query = "SELECT count(*) FROM metadata WHERE key = ? AND kind = ? AND value = ? AND document = ?"
    return sum(db.execute(query, (*row, number)).fetchone()[0] for row in tags.rows(tags.decode(metadata)))


def _text(db: sqlite3.Connection, number: int, text: str, characters: int) -> Iterator[str]:
    if len(text) != characters:
        yield f"has {len(text)} characters of text, not {characters}"
    span = (number * BLOCKS, number * BLOCKS + BLOCKS - 1)
    lengths = [
        row[0] for row in db.execute("SELECT length(text) FROM text_blocks WHERE id BETWEEN ? AND ? ORDER BY id", span)
    ]
    if any(length != BLOCK for length in lengths[:-1]):
        yield "a block of its text is short"


def _rows(db: sqlite3.Connection, number: int, first: int, count: int) -> list[tuple[Any, ...]]:
    return db.execute(
        'SELECT id, "index", start, "end", context, length FROM chunks '
        "WHERE document = ? AND id BETWEEN ? AND ? ORDER BY id",
        (number, first, first + count - 1),
    ).fetchall()


def _number(rows: list[tuple[Any, ...]], first: int, count: int) -> Iterator[str]:
    """Chunks have consecutive ids, in the order of their indexes."""
    if len(rows) != count:
        yield f"has {len(rows)} chunks in place, not {count}"
    yield from (f"chunk {index} is out of place" for id_, index, *_ in rows if id_ - first != index)


def _hashes(db: sqlite3.Connection, rows: list[tuple[Any, ...]], title: str, name: str, text: str) -> Iterator[str]:
    """Each vector is of its chunk's text, as that is embedded."""
    if not rows:
        return
    span = (rows[0][0], rows[-1][0])
    hashes = dict(db.execute("SELECT chunk, hash FROM vectors WHERE chunk BETWEEN ? AND ?", span))
    for chunk, index, start, end, context, _ in rows:
        wanted = vectors.digest(headed(context_of(title, context), name, text[start:end]))
        if hashes.get(chunk, wanted) != wanted:
            yield f"the vector of chunk {index} is of another text"


def _chunks(rows: list[tuple[Any, ...]], title: str, text: str, terms: Terms) -> Iterator[str]:
    """Spans lie in the text and leave out only space; lengths are what the analyzer counts."""
    covered = 0
    for _, index, start, end, context, length in rows:
        if not 0 <= start < end <= len(text):
            yield f"chunk {index} is no span of its text"
        if length != len(terms(context_of(title, context))) + len(terms(text[start:end])):
            yield f"chunk {index} has not {length} terms"
        if text[covered:start].strip():
            yield f"text before chunk {index} is in no chunk"
        covered = max(covered, end)
    if text[covered:].strip():
        yield "the end of its text is in no chunk"


def _parents(db: sqlite3.Connection, number: int, chunks: list[tuple[Any, ...]], text: str) -> Iterator[str]:
    """Unless the document waits for them: its parents are numbered on, lie in the text, leave out only space."""
    waits = db.execute("SELECT 1 FROM unparented WHERE document = ?", (number,)).fetchone()
    if waits or parents.kept(db) is None:
        return
    covered = 0
    rows = parents.of_document(db, number)
    for place, (start, end, index, *_) in enumerate(rows):
        if index != place:
            yield f"parent {place} is missing"
            return
        if not 0 <= start < end <= len(text) or end <= covered:
            yield f"parent {index} is no span of its text, or out of order"
        if text[covered:start].strip():
            yield f"text before parent {index} is in no parent"
        covered = max(covered, end)
    if text[covered:].strip():
        yield "the end of its text is in no parent"
    found = parents.of_chunks(db, [row[0] for row in chunks])
    yield from (f"chunk {row[1]} has no parent" for row in chunks if row[0] not in found)
