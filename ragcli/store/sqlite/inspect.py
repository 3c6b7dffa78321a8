"""A look into the index: counts, one document, one chunk, one term, and whether all of it holds together (A11)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from ragcli.errors import UsageError
from ragcli.store.sqlite import documents, parents, schema
from ragcli.store.sqlite.layout import BLOCK
from ragcli.store.sqlite.scoring import Lists, Term
from ragcli.store.sqlite.search import KeywordIndex
from ragcli.store.sqlite.store import SqliteStore
from ragcli.text import matching
from ragcli.types import Chunk, ChunkView, DocumentLine, DocumentView, Place, Span, Stats, TermStat, TermView

SHOWN = 20  # postings of a term that are listed
MOST_PLACES = 100  # documents that hold a text
_CHUNKED = "SELECT id, document_id, first_chunk FROM documents WHERE chunk_count > 0 ORDER BY document_id"
NEAREST = 3  # ids that are proposed in place of one that is not there


class Inspector:
    """Views of an open store, each of one state of it."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._db = store.db

    def stats(self) -> Stats:
        """The index in figures."""
        with self._store.snapshot():
            meta = schema.meta(self._db)
            count, average = KeywordIndex(self._db).statistics()
            return Stats(
                path=str(self._store.path),
                schema=schema.VERSION,
                collection=str(meta.get("collection", "")),
                documents=self._one("SELECT count(*) FROM documents"),
                chunks=count,
                terms=self._one("SELECT count(DISTINCT term) FROM terms"),
                postings=self._one("SELECT coalesce(sum(df), 0) FROM terms"),
                total_terms=int(str(meta.get("term_count", 0))),
                average_length=average,
                segments=self._one("SELECT count(*) FROM segments"),
                deleted_chunks=self._one("SELECT coalesce(sum(length(ids)), 0) / 2 FROM deleted"),
                bytes=os.stat(self._store.path).st_size,  # noqa: PTH116
                generation=int(str(meta.get("generation", 0))),
                free=self._one("PRAGMA freelist_count") * self._one("PRAGMA page_size"),
                vectors=self._store.vector_count(),
                embedder=self._store.card(),
                parents=parents.total(self._db),
                unparented=parents.missing(self._db),
                roots=self._roots(),
                formats=dict(
                    self._db.execute("SELECT format, count(*) FROM documents GROUP BY format ORDER BY format")
                ),
                failed=tuple(documents.failed_sources(self._db)),
                settings=self._settings(),
            )

    def _settings(self) -> dict[str, object]:
        from msgspec import to_builtins

        own, kept = self._store.settings, parents.kept(self._db)
        settings = {"analyzer": to_builtins(own.analyzer), "chunking": to_builtins(own.chunking)}
        return settings if kept is None else {**settings, "parents": to_builtins(kept)}

    def _one(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _roots(self) -> tuple[str, ...]:
        """The folders that were ingested, as they are stored; standard input has none."""
        rows = self._db.execute("SELECT DISTINCT root FROM sources ORDER BY root")
        return tuple(root or "standard input" for (root,) in rows)

    def listing(self) -> list[DocumentLine]:
        """Every document in short, by its id."""
        with self._store.snapshot():
            return list(documents.listing(self._db))

    def document(self, document_id: str) -> DocumentView:
        """A document with all its chunks. Raises: UsageError for an unknown id."""
        with self._store.snapshot():
            found = self._stored(document_id)
            ids = range(found.first_chunk, found.first_chunk + found.chunk_count)
            chunks = self._store.fetch(list(ids))
            return DocumentView(
                id=found.id,
                path=found.path,
                title=found.title,
                format=found.format,
                metadata=found.metadata,
                created_at=found.created_at,
                updated_at=found.updated_at,
                ingested_at=found.ingested_at,
                size=found.size,
                characters=found.characters,
                first_line=found.first_line,
                chunks=tuple(chunks[chunk] for chunk in ids),
                stale=found.stale,
                text=documents.text_of(self._db, found.number),
            )

    def _stored(self, document_id: str) -> documents.StoredDocument:
        found = documents.document(self._db, document_id)
        if found is None:
            raise UsageError(f"no document {document_id} in {self._store.path}", self._similar(document_id))
        return found

    def _similar(self, document_id: str) -> str:
        name = document_id.rsplit("/", 1)[-1]
        rows = self._db.execute(
            "SELECT document_id FROM documents WHERE instr(document_id, ?) ORDER BY document_id LIMIT ?",
            (name, NEAREST),
        ).fetchall()
        close = [row[0] for row in rows] or self._close(document_id)
        return f"did you mean {' or '.join(close)}?" if close else "ragcli inspect --documents lists what there is"

    def _close(self, document_id: str) -> list[str]:
        from difflib import get_close_matches

        return get_close_matches(document_id, documents.some_names(self._db), n=NEAREST)

    def chunk(self, reference: str) -> ChunkView:
        """A chunk, named `document_id#index`, as the keyword index sees it.

        Raises: UsageError for a reference to nothing.
        """
        name, _, index = reference.rpartition("#")
        if not name or not index.isdecimal():
            raise UsageError(f"{reference} names no chunk", "write DOCUMENT_ID#INDEX, the index counting from 0")
        with self._store.snapshot():
            found = self._stored(name)
            number = found.first_chunk + int(index)
            if int(index) >= found.chunk_count:
                raise UsageError(f"{name} has no chunk {index}", f"its chunks are 0 to {found.chunk_count - 1}")
            chunk = self._store.fetch([number])[number]
            terms = self._terms_of(chunk)
            return ChunkView(
                chunk=chunk,
                stale=found.stale,
                terms=dict(Counter(terms).most_common()),
                length=len(terms),
                previous=f"{name}#{int(index) - 1}" if int(index) else None,
                next=f"{name}#{int(index) + 1}" if int(index) + 1 < found.chunk_count else None,
                parent=self._store.parents([number]).get(number),
            )

    def _terms_of(self, chunk: Chunk) -> list[str]:
        return self._store.terms(chunk.context) + self._store.terms(chunk.text)

    def terms(self, word: str) -> TermView:
        """What the index knows of each term of `word`."""
        with self._store.snapshot():
            found = KeywordIndex(self._db).look_up(self._store.terms(word))
            return TermView(word=word, terms=tuple(self._term(term) for term in found))

    def _term(self, term: Term) -> TermStat:
        dead = {block: frozenset(memoryview(ids).cast("H")) for block, ids in self._db.execute("SELECT * FROM deleted")}
        alive = (entry for entry in self._entries(term) if entry[0] % BLOCK not in dead.get(entry[0] // BLOCK, ()))
        first = list(islice(alive, SHOWN))
        total = sum(tf for _, tf in first) + sum(tf for _, tf in alive)
        chunks = self._store.fetch([chunk for chunk, _ in first])
        named = tuple((f"{chunks[chunk].document_id}#{chunks[chunk].index}", tf) for chunk, tf in first)
        return TermStat(term=term.text, document_frequency=term.df, idf=term.idf, postings=named, total=total)

    def _entries(self, term: Term) -> Iterator[tuple[int, int]]:
        """(chunk id, frequency), in the order of the ids."""
        lists = Lists(self._db)
        for part in term.parts:
            entries = lists[part]
            lows = iter(entries.lows)
            position = 0
            for block, size in entries.heads:
                for _ in range(size):
                    yield block * BLOCK + next(lows), entries.tf(position)
                    position += 1

    def places(self, text: str, most: int = MOST_PLACES) -> tuple[Place, ...]:
        """The documents that hold the text, `most` at most, in the order of their ids. Reads all that is stored.

        White space counts as equal to other white space, upper case to lower case.
        """
        found: list[Place] = []
        wanted = matching(text)
        with self._store.snapshot():
            for number, name, first in self._db.execute(_CHUNKED).fetchall():
                spans = [match.span() for match in wanted.finditer(documents.text_of(self._db, number))]
                if spans:
                    found.append(self._place(name, number, first, spans))
                if len(found) == most:
                    break
        return tuple(found)

    def _place(self, name: str, number: int, first: int, spans: Sequence[Span]) -> Place:
        rows = self._db.execute('SELECT id, "start", "end" FROM chunks WHERE document = ? ORDER BY id', (number,))
        chunks = [(chunk - first, start, end) for chunk, start, end in rows]
        whole = {at for at, low, high in chunks for start, end in spans if low <= start and end <= high}
        parts = {at for at, low, high in chunks for start, end in spans if low < end and start < high}
        return Place(name, tuple(sorted(whole)), () if whole else tuple(sorted(parts)))

    def check(self) -> list[str]:
        """Every fault of the index, in words; [] when it is sound."""
        from ragcli.store.sqlite.check import check

        with self._store.snapshot():
            return check(self._db)
