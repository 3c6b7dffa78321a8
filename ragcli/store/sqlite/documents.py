"""Documents and their chunks: written whole, deleted whole, fetched by id (spec I6, I15, I31, I34).

A document's text is cut into blocks of 32,768 characters; a chunk is a span of it and holds no text of its own, so
fetching one reads a block or two. Lines of chunks count from the document's first line: a record that moves inside its
collection changes one number. Ids of documents and chunks are never used twice.

`Batch` is one transaction of the writer. Ranking, reading and chunking are others' work.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from ragcli.store.sqlite import outlines, parents, tags
from ragcli.store.sqlite.parents import Row as ParentRow
from ragcli.store.sqlite.schema import base_folder, transaction
from ragcli.store.sqlite.vectors import Pending, VectorWriter, digest
from ragcli.types import Chunk, Document, DocumentLine, MetadataValue, Problem, Source

if TYPE_CHECKING:
    from ragcli.store.sqlite.postings import Segment

BLOCK = 32768  # characters of a text block
BLOCKS = 65536  # block ids of a document: id * BLOCKS + number
STDIN = "stdin:"  # location of what came from standard input: there is no file to look at
DELETE_AT_ONCE = 4096  # chunks whose terms are held in memory while they are deleted

Terms = Callable[[str], list[str]]
# index, start, end, start_line, end_line, page, page_end, heading, heading_level, breadcrumb, context, length
ChunkRow = tuple[int, int, int, int, int, int | None, int | None, str | None, int, str | None, str | int | None, int]
CONTEXT: Final = 10
LENGTH: Final = 11
TITLE = 1  # a context that is just the document's title


class NewDocument(msgspec.Struct, frozen=True):
    """A document ready to be written: rows, and its text. Made in a worker process, so it can be pickled."""

    raw: str
    title: str
    name: str
    format: str
    metadata: str | None
    tags: list[tags.Row]
    created_at: str | None
    updated_at: str | None
    hash: bytes
    first_line: int
    text: str
    chunks: list[ChunkRow]
    outline: str | None = None  # as `outlines` stores it
    parents: list[ParentRow] | None = None  # None: not cut


class Existing(msgspec.Struct, frozen=True):
    """A stored document, as much of it as tells whether it changed."""

    id: int
    hash: bytes
    first_line: int
    document_id: str


class SourceRow(msgspec.Struct, frozen=True):
    """What the index remembers of a source. `location`, `root` are absolute here, whatever the file holds."""

    id: int
    location: str
    root: str
    relative: str
    size: int | None
    mtime_ns: int | None
    hash: bytes | None
    status: str
    problem: str | None
    reason: str | None
    tags: str | None
    rules: bytes | None


def context_of(title: str, context: str | int | None) -> str:
    """The header that was indexed with a chunk, from how it is stored."""
    return title if context == TITLE else str(context or "")


def stored_context(title: str, context: str) -> str | int | None:
    """How a header is stored: most are just the title of the document."""
    if not context:
        return None
    return TITLE if context == title else context


# ---------------------------------------------------------------------------------------------------------- sources


# location, size, mtime_ns, status, rules, id: plain tuples, since there may be a million and most are only compared
Known = tuple[str, int | None, int | None, str, bytes | None, int]


def known(db: sqlite3.Connection) -> dict[str, Known]:
    """Every source the index knows, by its absolute location; also those that failed."""
    base = base_folder(db)
    rows = db.execute(
        "SELECT CASE WHEN location GLOB '/*' OR location GLOB ?2 THEN location "
        "WHEN location = '.' THEN ?1 ELSE ?1 || '/' || location END, size, mtime_ns, status, rules, id FROM sources",
        (base, f"{STDIN}*"),
    )
    return {row[0]: row for row in rows}


def source(db: sqlite3.Connection, number: int) -> SourceRow:
    """All that the index remembers of a source."""
    base = base_folder(db)
    location, root, *rest = db.execute(
        "SELECT location, root, relative, size, mtime_ns, hash, status, problem, reason, tags, rules "
        "FROM sources WHERE id = ?",
        (number,),
    ).fetchone()
    return SourceRow(number, absolute(base, location), absolute(base, root), *rest)


def absolute(base: str, location: str) -> str:
    """A stored location as an absolute path. What came from standard input has none and stays as it is."""
    if location.startswith(("/", STDIN)):
        return location
    return base if location == "." else f"{base}/{location}"


def relative_to(base: str, location: str) -> str:
    """How a location is stored: below the index's own folder relative to it, so that a project can be moved."""
    if location == base:
        return "."
    short = location.removeprefix(base + "/")
    return location if short.startswith(STDIN) else short


def failed_sources(db: sqlite3.Connection) -> list[Problem]:
    """The sources that could not be read when it was last tried, or not all of their records, with the reason."""
    base = base_folder(db)
    rows = db.execute(
        "SELECT location, problem, reason FROM sources "
        "WHERE status = 'failed' OR status = 'complete' AND problem IS NOT NULL ORDER BY location"
    )
    return [Problem(absolute(base, location), kind or "unreadable", reason or "") for location, kind, reason in rows]


def incomplete(db: sqlite3.Connection) -> dict[str, Problem]:
    """The sources that are in the index but for some records, by location."""
    base = base_folder(db)
    rows = db.execute(
        "SELECT location, problem, reason FROM sources WHERE status = 'complete' AND problem IS NOT NULL ORDER BY id"
    )
    return {
        place: Problem(place, kind, reason or "")
        for location, kind, reason in rows
        if (place := absolute(base, location))
    }


def stale(db: sqlite3.Connection, chunks: Sequence[int]) -> dict[int, str | None]:
    """For each chunk id what became of the file behind it: None (as ingested), "changed" or "missing" (spec C12)."""
    rows = db.execute(
        "SELECT c.id, s.location, s.size, s.mtime_ns, s.hash FROM json_each(?) j "
        "JOIN chunks c ON c.id = j.value JOIN documents d ON d.id = c.document JOIN sources s ON s.id = d.source",
        (_json(chunks),),
    ).fetchall()
    base = base_folder(db) if rows else ""
    known: dict[str, str | None] = {}
    found: dict[int, str | None] = {}
    for chunk, location, *facts in rows:
        if location not in known:
            known[location] = state_of(absolute(base, location), *facts)
        found[chunk] = known[location]
    return found


COMPARED = 16 * 1024 * 1024  # a file up to this size is read again when only its time differs


def state_of(location: str, size: int | None, mtime_ns: int | None, digest: bytes | None) -> str | None:
    """None, "changed" or "missing" for a file, by its size and time; by its content when only the time differs."""
    if location.startswith(STDIN):
        return None
    try:
        now = os.stat(location)  # noqa: PTH116 - once a hit, and a Path costs more than the call
    except OSError:
        return "missing"
    if now.st_size != size:
        return "changed"
    if now.st_mtime_ns == mtime_ns:
        return None
    return None if digest and now.st_size <= COMPARED and digest_of(location) == digest else "changed"


def digest_of(location: str) -> bytes | None:
    """blake2b-16 of a file's bytes; None when it can't be read."""
    import hashlib

    try:
        with open(location, "rb") as file:  # noqa: PTH123
            return hashlib.file_digest(file, new_digest).digest()
    except OSError:
        return None


def new_digest() -> hashlib._Hash:  # type: ignore[name-defined]  # noqa: F821
    """The hash of contents and of documents."""
    from hashlib import blake2b

    return blake2b(digest_size=16)


# ---------------------------------------------------------------------------------------------------------- writing


def first_free(db: sqlite3.Connection) -> int:
    """Every document that is there has a smaller row id, every later one does not."""
    return int(db.execute("SELECT value FROM meta WHERE key = 'next_document'").fetchone()[0])


def of_source(db: sqlite3.Connection, source: int, *, below: int = 2**62) -> list[int]:
    """The row ids of a source's documents, those below `below`."""
    return [row[0] for row in db.execute("SELECT id FROM documents WHERE source = ? AND id < ?", (source, below))]


def total(db: sqlite3.Connection, *, blank: bool = True) -> int:
    """How many documents there are, those that are `blank` counted or not."""
    return int(db.execute("SELECT count(*) FROM documents WHERE chunk_count > 0 OR ?", (blank,)).fetchone()[0])


def totals(db: sqlite3.Connection) -> dict[int, int]:
    """How many documents each source has, for those that have any."""
    return dict(db.execute("SELECT source, count(*) FROM documents GROUP BY source"))


def some_names(db: sqlite3.Connection) -> list[str]:
    """Document ids to look for a likely one among; not all of a large index."""
    return [row[0] for row in db.execute("SELECT document_id FROM documents LIMIT 10000")]


def listing(db: sqlite3.Connection) -> Iterator[DocumentLine]:
    """Every document in short, by its id."""
    rows = db.execute("SELECT document_id, format, chunk_count, title FROM documents ORDER BY document_id")
    return (DocumentLine(id=name, format=kind, chunks=count, title=title) for name, kind, count, title in rows)


def existing(db: sqlite3.Connection, source: int, raws: Sequence[str]) -> dict[str, Existing]:
    """The documents of a source, by the ids that its reader gave them."""
    found = db.execute(
        "SELECT document_id, id, hash, first_line, document_id FROM documents "
        "WHERE document_id IN (SELECT value FROM json_each(?1)) AND source = ?2 AND raw IS NULL "
        "UNION ALL SELECT raw, id, hash, first_line, document_id FROM documents "
        "WHERE source = ?2 AND raw IS NOT NULL AND raw IN (SELECT value FROM json_each(?1))",
        (_json(raws), source),
    )
    return {raw: Existing(*rest) for raw, *rest in found}


def claims(db: sqlite3.Connection, document_ids: Sequence[str]) -> dict[str, tuple[int, Existing]]:
    """Which of these document ids are taken: by which source, and the document that has it."""
    rows = db.execute(
        "SELECT document_id, source, id, hash, first_line, document_id, raw FROM documents "
        "WHERE document_id IN (SELECT value FROM json_each(?))",
        (_json(document_ids),),
    )
    return {name: (-1 if raw is not None else source, Existing(*rest)) for name, source, *rest, raw in rows}


class Batch:
    """One transaction: sources, documents, chunks and postings, and the counters in step with them.

    `terms` analyses text exactly as it was indexed: deleting needs the terms of what is deleted.
    """

    def __init__(self, db: sqlite3.Connection, terms: Terms, *, now: int) -> None:
        self.db = db
        self.terms = terms
        self.now = now
        self.base = base_folder(db)
        rows = db.execute("SELECT key, value FROM meta WHERE key IN ('chunk_count', 'term_count', 'next_document')")
        self.counts: dict[str, int] = dict(rows)
        self._documents: list[tuple[object, ...]] = []
        self._blocks: list[tuple[int, str]] = []
        self._chunks: list[tuple[object, ...]] = []
        self._tags: list[tuple[object, ...]] = []
        self._refused: list[tuple[int, NewDocument]] = []
        self._unembedded: list[int] = []
        self._outlines: list[tuple[int, str]] = []
        self._parents: list[tuple[int, *ParentRow]] = []
        self._unparented: list[int] = []
        self.keeps_parents = parents.kept(db) is not None
        self.vectors = VectorWriter(db)
        self._segments: list[tuple[int, Segment]] = []

    def put_source(self, source: Source, **columns: object) -> int:
        """Insert the source, or update the given columns of it; gives its id."""
        location = relative_to(self.base, source.location)
        self.db.execute(
            "INSERT INTO sources(location, root, relative, status) VALUES (?, ?, ?, 'partial') "
            "ON CONFLICT(location) DO NOTHING",
            (location, relative_to(self.base, source.root), source.relative),
        )
        (number,) = self.db.execute("SELECT id FROM sources WHERE location = ?", (location,)).fetchone()
        if columns:
            names = ", ".join(f"{name} = ?" for name in columns)  # names are this package's own
            self.db.execute(f"UPDATE sources SET {names} WHERE id = ?", (*columns.values(), number))  # noqa: S608
        return int(number)

    def add(self, document: NewDocument, *, source: int, document_id: str, first_chunk: int) -> int:
        """Queue a document whose chunks are numbered from `first_chunk`; gives its id. `flush` writes."""
        number = self.counts["next_document"]
        self.counts["next_document"] += 1
        text = document.text
        self._documents.append((
            number, document_id, document.raw if document.raw != document_id else None, source,
            document.title, document.name, document.format, document.metadata,
            document.created_at, document.updated_at, self.now, document.hash,
            document.first_line, len(text), first_chunk, len(document.chunks),
        ))  # fmt: skip
        block = number * BLOCKS
        if len(text) <= BLOCK:
            self._blocks.append((block, text))
        else:
            self._blocks += [(block + n, text[n * BLOCK : (n + 1) * BLOCK]) for n in range(-(-len(text) // BLOCK))]
        self._chunks += [(id_, number, *row) for id_, row in enumerate(document.chunks, first_chunk)]
        if document.tags:
            self._tags += [(*row, number) for row in document.tags]
        if document.chunks and self.vectors.expects:
            self._unembedded.append(number)
        if document.outline:
            self._outlines.append((number, document.outline))
        if self.keeps_parents:
            self._add_parents(number, document)
        self.counts["chunk_count"] += len(document.chunks)
        self.counts["term_count"] += sum([row[LENGTH] for row in document.chunks])
        return number

    def _add_parents(self, number: int, document: NewDocument) -> None:
        if document.parents is not None:
            self._parents += [(number, *row) for row in document.parents]
        elif document.chunks:
            self._unparented.append(number)

    def refuse(self, document: NewDocument, first_chunk: int) -> None:
        """The segment holds this document's chunks, but it is not to go in: take its postings out again."""
        self._refused.append((first_chunk, document))

    def flush(self, segments: Iterable[tuple[int, Segment]]) -> None:
        """Write the rows that were queued. Their postings (each from its first chunk id on) wait for the `end`."""
        many = self.db.executemany
        many(f"INSERT INTO documents VALUES ({','.join('?' * 16)})", self._documents)  # noqa: S608
        many("INSERT INTO text_blocks VALUES (?, ?)", self._blocks)
        many(f"INSERT INTO chunks VALUES ({','.join('?' * 14)})", self._chunks)  # noqa: S608
        many("INSERT INTO metadata VALUES (?, ?, ?, ?)", self._tags)
        self.vectors.await_(self._unembedded)
        outlines.put(self.db, self._outlines)
        parents.put(self.db, self._parents)
        parents.await_(self.db, self._unparented)
        for queue in (
            self._documents, self._blocks, self._chunks, self._tags, self._unembedded, self._outlines, self._parents,
            self._unparented,
        ):  # fmt: skip
            queue.clear()
        self._segments += segments

    def end(self) -> None:
        """The last thing before the commit: the postings of all that came in, as one segment, and the counters."""
        from ragcli.store.sqlite import postings

        if self._segments:
            postings.write(self.db, self._segments)
        for first, document in self._refused:
            self._take_out(self._terms_of(document.title, document.text, document.chunks, first))
        self.vectors.end()
        self.db.executemany("UPDATE meta SET value = ?2 WHERE key = ?1", self.counts.items())
        self.db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")

    def _terms_of(
        self, title: str, text: str, chunks: Sequence[ChunkRow], first: int
    ) -> Iterator[tuple[int, list[str]]]:
        for number, row in enumerate(chunks, first):
            context = context_of(title, row[CONTEXT])
            yield number, self.terms(context) + self.terms(text[row[1] : row[2]])

    def _take_out(self, chunks: Iterable[tuple[int, list[str]]]) -> None:
        from ragcli.store.sqlite import postings

        gone: dict[int, list[str]] = {}
        for number, terms in chunks:
            gone[number] = terms
            if len(gone) == DELETE_AT_ONCE:
                postings.delete(self.db, gone)
                gone = {}
        if gone:
            postings.delete(self.db, gone)

    def delete(self, documents: Sequence[int]) -> None:
        """Delete documents with all that belongs to them: text, chunks, parents, metadata, postings."""
        self._take_out(pair for number in documents for pair in self._stored_terms(number))
        for number in documents:
            self._delete_rows(number)

    def _stored_terms(self, number: int) -> Iterator[tuple[int, list[str]]]:
        row = self.db.execute("SELECT title, first_chunk FROM documents WHERE id = ?", (number,)).fetchone()
        text = text_of(self.db, number)
        columns = '"index", start, "end", 0, 0, 0, 0, 0, 0, 0, context, length'
        chunks = self.db.execute(
            f"SELECT {columns} FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id",  # noqa: S608 - a constant
            self._chunk_range(number),
        ).fetchall()
        return self._terms_of(row[0], text, chunks, row[1])

    def _chunk_range(self, number: int) -> tuple[int, int]:
        first, count = self.db.execute(
            "SELECT first_chunk, chunk_count FROM documents WHERE id = ?", (number,)
        ).fetchone()
        return first, first + count - 1

    def _delete_rows(self, number: int) -> None:
        execute = self.db.execute
        span = self._chunk_range(number)
        count, terms = execute("SELECT count(*), total(length) FROM chunks WHERE id BETWEEN ? AND ?", span).fetchone()
        (metadata,) = execute("SELECT metadata FROM documents WHERE id = ?", (number,)).fetchone()
        rows = [(*row, number) for row in tags.rows(tags.decode(metadata))]
        statement = "DELETE FROM metadata WHERE key = ? AND kind = ? AND value = ? AND document = ?"
        self.db.executemany(statement, rows)
        self.vectors.retire(number, *span)
        parents.delete(self.db, number)
        outlines.delete(self.db, number)
        execute("DELETE FROM chunks WHERE id BETWEEN ? AND ?", span)
        execute("DELETE FROM text_blocks WHERE id BETWEEN ? AND ?", (number * BLOCKS, number * BLOCKS + BLOCKS - 1))
        execute("DELETE FROM documents WHERE id = ?", (number,))
        self.counts["chunk_count"] -= count
        self.counts["term_count"] -= int(terms)

    def move(self, document: int, first_line: int) -> None:
        """The document is where it says in its source now."""
        self.db.execute(
            "UPDATE documents SET first_line = ?1 WHERE id = ?2 AND first_line <> ?1", (first_line, document)
        )

    def reopen(self, document: int) -> None:
        """The source of this document is to be read again, whatever its size and time."""
        self.db.execute(
            "UPDATE sources SET status = 'partial' WHERE id = (SELECT source FROM documents WHERE id = ?)", (document,)
        )

    def drop_sources(self, sources: Sequence[int] | None = None) -> None:
        """Forget these sources; None: those that are to be read again and have no documents."""
        if sources is None:
            self.db.execute("DELETE FROM sources WHERE status = 'partial' AND id NOT IN (SELECT source FROM documents)")
        else:
            self.db.executemany("DELETE FROM sources WHERE id = ?", [(source,) for source in sources])


@contextmanager
def batch(db: sqlite3.Connection, terms: Terms, *, now: int) -> Iterator[Batch]:
    """One transaction of the writer: all that is done with the `Batch`, or nothing."""
    with transaction(db):
        current = Batch(db, terms, now=now)
        yield current
        current.end()


# --------------------------------------------------------------------------------------------------------- fetching


def chunks(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, Chunk]:
    """Stored chunks by their ids, with text and the document's path, title and metadata. Unknown ids are left out."""
    rows = db.execute(_CHUNKS, (_json(ids),)).fetchall()
    base = base_folder(db) if rows else ""
    documents: dict[int, dict[str, object]] = {}
    found: dict[int, Chunk] = {}
    for id_, number, index, start, end, line, end_line, page, page_end, heading, level, crumb, context, *own in rows:
        document_id, title, metadata, first_line, location = own
        if number not in documents:
            documents[number] = _own_to_all(base, document_id, title, metadata, location)
        found[id_] = Chunk(
            index=index, start=start, end=end, text=span_of(db, number, start, end),
            start_line=first_line + line, end_line=first_line + end_line, page=page, page_end=page_end,
            heading=heading or "", heading_level=level, heading_breadcrumb=crumb or "",
            context=context_of(title, context), **documents[number],  # type: ignore[arg-type]
        )  # fmt: skip
    return found


def _own_to_all(base: str, document_id: str, title: str, metadata: str | None, location: str) -> dict[str, object]:
    """What all chunks of a document have of it."""
    return {
        "document_id": document_id, "title": title, "metadata": tags.decode(metadata),
        "path": path_of(base, location, document_id),
    }  # fmt: skip


_CHUNKS = """
SELECT c.id, c.document, c."index", c.start, c."end", c.start_line, c.end_line, c.page, c.page_end, c.heading,
  c.heading_level, c.breadcrumb, c.context, d.document_id, d.title, d.metadata, d.first_line, s.location
FROM json_each(?) j JOIN chunks c ON c.id = j.value JOIN documents d ON d.id = c.document
JOIN sources s ON s.id = d.source
"""


def parents_of(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, Chunk]:
    """Chunk id -> its parent, in the form of a chunk: its own index, text, span, lines, pages, heading.

    Chunks that have none are left out. Each parent's text is read once, however many chunks it is the parent of.
    """
    rows = parents.of_chunks(db, ids)
    owners = _owners(db, {number for number, _ in rows.values()})
    made: dict[tuple[int, int], Chunk] = {}
    for number, row in rows.values():
        start, end, index, line, end_line, page, page_end, heading, level, crumb = row
        if (number, index) not in made:
            first_line, own = owners[number]
            made[number, index] = Chunk(
                index=index, start=start, end=end, text=span_of(db, number, start, end),
                start_line=first_line + line, end_line=first_line + end_line, page=page, page_end=page_end,
                heading=heading or "", heading_level=level, heading_breadcrumb=crumb or "", **own,  # type: ignore[arg-type]
            )  # fmt: skip
    return {chunk: made[number, row[2]] for chunk, (number, row) in rows.items()}


def _owners(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[int, dict[str, object]]]:
    """Document -> its first line, and what all of its parents have of it."""
    query = (
        "SELECT d.id, d.first_line, d.document_id, d.title, d.metadata, s.location FROM documents d "
        "JOIN sources s ON s.id = d.source WHERE d.id IN (SELECT value FROM json_each(?))"
    )
    base = base_folder(db) if ids else ""
    return {number: (line, _own_to_all(base, *own)) for number, line, *own in db.execute(query, (_json(list(ids)),))}


def path_of(base: str, location: str, document_id: str) -> str:
    """Where the file is, as an absolute path; what came from standard input is known by its document id alone."""
    return document_id if location.startswith(STDIN) else absolute(base, location)


def span_of(db: sqlite3.Connection, document: int, start: int, end: int) -> str:
    """`text[start:end]` of a document: reads the blocks that hold it."""
    first, last = start // BLOCK, max(end - 1, start) // BLOCK
    base = document * BLOCKS
    if first == last:
        row = db.execute("SELECT text FROM text_blocks WHERE id = ?", (base + first,)).fetchone()
        return str(row[0])[start - first * BLOCK : end - first * BLOCK] if row else ""
    rows = db.execute("SELECT text FROM text_blocks WHERE id BETWEEN ? AND ? ORDER BY id", (base + first, base + last))
    return "".join([row[0] for row in rows])[start - first * BLOCK : end - first * BLOCK]


def text_of(db: sqlite3.Connection, document: int) -> str:
    """A document's whole text."""
    span = (document * BLOCKS, document * BLOCKS + BLOCKS - 1)
    return "".join(
        [row[0] for row in db.execute("SELECT text FROM text_blocks WHERE id BETWEEN ? AND ? ORDER BY id", span)]
    )


def without_vectors(db: sqlite3.Connection, document: int) -> Iterator[Pending]:
    """The chunks of a document that wait for their vectors, in their order, as they are to be embedded."""
    from ragcli.chunk.annotate import headed  # not on the way of a query

    row = db.execute("SELECT title, name, first_chunk, chunk_count FROM documents WHERE id = ?", (document,)).fetchone()
    if row is None:  # deleted since it was seen to wait
        return
    title, name, first, count = row
    rows = db.execute(_WITHOUT_VECTORS, (first, first + count - 1)).fetchall()
    for chunk, start, end, context in rows:
        text = headed(context_of(title, context), name, span_of(db, document, start, end))
        yield Pending(chunk, document, text, digest(text))


_WITHOUT_VECTORS = """
SELECT id, start, "end", context FROM chunks
WHERE id BETWEEN ?1 AND ?2 AND id NOT IN (SELECT chunk FROM vectors WHERE chunk BETWEEN ?1 AND ?2) ORDER BY id
"""


class Stored(msgspec.Struct, frozen=True):
    """A document to be cut anew. `is_known`: its pages and headings are those that its reader gave.

    `chunks`: where it is not, spans, lines, pages and headings of its chunks, without text.
    """

    document: Document
    is_known: bool
    chunks: tuple[Chunk, ...]


def stored(db: sqlite3.Connection, number: int) -> Stored:
    """A document that is there, with its text."""
    row = db.execute(
        "SELECT document_id, title, name, format, first_line, first_chunk, chunk_count FROM documents WHERE id = ?",
        (number,),
    ).fetchone()
    id_, title, name, format_, first_line, first, count = row
    outline = outlines.of(db, number)
    document = Document(
        id=id_, text=text_of(db, number), title=title, name=name, format=format_, first_line=first_line,
        headings=outline.as_headings if outline else (), pages=outline.pages if outline else (),
    )  # fmt: skip
    rows = db.execute(_SPANS, (first, first + count - 1)).fetchall() if outline is None else ()
    chunks = tuple(
        Chunk(
            document_id=id_, index=index, start=start, end=end, text="", start_line=first_line + line,
            end_line=first_line + end_line, page=page, page_end=page_end, heading=heading or "", heading_level=level,
            heading_breadcrumb=crumb or "",
        )
        for index, start, end, line, end_line, page, page_end, heading, level, crumb in rows
    )  # fmt: skip
    return Stored(document, outline is not None, chunks)


_SPANS = """
SELECT "index", start, "end", start_line, end_line, page, page_end, heading, heading_level, breadcrumb FROM chunks
WHERE id BETWEEN ? AND ? ORDER BY id
"""


class StoredDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document's row. `size` is its source's in bytes (None: standard input), `characters` its text's length.

    Times are ISO 8601 UTC.
    """

    number: int
    id: str
    path: str
    title: str
    name: str
    format: str
    metadata: dict[str, MetadataValue]
    created_at: str | None
    updated_at: str | None
    ingested_at: str
    size: int | None
    characters: int
    first_line: int
    first_chunk: int
    chunk_count: int
    stale: str | None


_DOCUMENT = """
SELECT d.id, d.document_id, d.title, d.name, d.format, d.metadata, d.created_at, d.updated_at, d.ingested_at,
  d.characters, d.first_line, d.first_chunk, d.chunk_count, s.location, s.size, s.mtime_ns, s.hash
FROM documents d JOIN sources s ON s.id = d.source WHERE d.document_id = ?
"""


def document(db: sqlite3.Connection, document_id: str) -> StoredDocument | None:
    """The document of this id; None if there is none. `stale` looks at its file now."""
    row = db.execute(_DOCUMENT, (document_id,)).fetchone()
    if row is None:
        return None
    number, id_, title, name, format_, metadata, created, updated, ingested, *counts = row
    characters, first_line, first_chunk, chunk_count, location, size, mtime_ns, digest = counts
    base = base_folder(db)
    return StoredDocument(
        number=number, id=id_, path=path_of(base, location, id_), title=title, name=name, format=format_,
        metadata=tags.decode(metadata), created_at=created, updated_at=updated or mtime_of(name, location, mtime_ns),
        ingested_at=iso(ingested), size=None if location.startswith(STDIN) else size or 0,
        characters=characters, first_line=first_line, first_chunk=first_chunk, chunk_count=chunk_count,
        stale=state_of(absolute(base, location), size, mtime_ns, digest),
    )  # fmt: skip


def mtime_of(name: str, location: str, mtime_ns: int | None) -> str | None:
    """A file's own time, for a document that is a file (a record of a collection has no name); None where unknown."""
    if not name or mtime_ns is None or location.startswith(STDIN):
        return None
    return iso(mtime_ns // 1_000_000_000)


def iso(seconds: int) -> str:
    """Seconds since 1970 in ISO 8601 UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def names(db: sqlite3.Connection, chunks: Sequence[int]) -> dict[int, tuple[str, int]]:
    """Chunk ids as (document id, chunk index): what orders equal scores."""
    query = (
        'SELECT chunks.id, document_id, "index" FROM chunks JOIN documents ON documents.id = document '
        "WHERE chunks.id IN (SELECT value FROM json_each(?))"
    )
    return {chunk: (document, index) for chunk, document, index in db.execute(query, (_json(chunks),))}


def numbers(db: sqlite3.Connection, document_ids: Sequence[str]) -> dict[str, int]:
    """The row ids of documents, by document id; unknown ones are left out."""
    rows = db.execute(
        "SELECT document_id, id FROM documents WHERE document_id IN (SELECT value FROM json_each(?))",
        (_json(document_ids),),
    )
    return dict(rows)


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(list(values)).decode()
