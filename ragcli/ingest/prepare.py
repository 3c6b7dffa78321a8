"""One batch of sources, from bytes to rows and postings: all of an ingest that needs no write access.

Runs in a worker process or in the caller's own. A batch ends early, with what is left of it handed back, when it has
taken long enough or grown large enough: so that commits can come every few seconds, whatever the files are like.
One source that can't be read, for whatever reason, is a `failure` in its part and never ends the batch (spec I5).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ragcli.errors import ReadError
from ragcli.options import AnalyzerSettings, Bm25Settings, ChunkingSettings, ParentsSettings
from ragcli.store.sqlite import documents, outlines, parents, tags
from ragcli.store.sqlite.documents import ChunkRow, Existing, NewDocument
from ragcli.store.sqlite.layout import BLOCK
from ragcli.store.sqlite.postings import Inverter, Segment
from ragcli.types import Chunk, Document, MetadataValue, Problem, ReadRequest, Source

if TYPE_CHECKING:
    from ragcli.chunk.measure import TokenizerSource
    from ragcli.store.sqlite.schema import Connection

SECONDS = 2.0  # of work in one batch; `commit` takes some together
CHUNKS = 32_768  # in one batch, unless a single document has more
CHARACTERS = 32 * 1024 * 1024


class Preparation(msgspec.Struct, frozen=True, kw_only=True):
    """What every batch of a run is prepared with. Goes to the worker processes pickled."""

    index: str
    chunking: ChunkingSettings
    analyzer: AnalyzerSettings
    bm25: Bm25Settings
    max_file_bytes: int
    rules: Mapping[str, Mapping[str, Any]]  # glob on the document id -> metadata
    tokenizer: str | None = None  # the data file, where tokens are counted
    parents: ParentsSettings | None = None  # None: none are cut


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One source to read, or one run of a collection's lines (`request`). `number` names the source in this run.

    `known`: its row in the index, when there is one. `last`: nothing of it comes after this job; then `hash` is the
    digest of the whole collection. `tags` are those of `--tag`, now or earlier.
    """

    number: int
    source: Source
    known: int | None
    request: ReadRequest | None = None
    last: bool = True
    hash: bytes | None = None
    tags: Mapping[str, MetadataValue] = {}


class Part(msgspec.Struct, kw_only=True):
    """What came of one job. `kept` are (row id, first line) of documents that are in the index as they are."""

    number: int
    last: bool
    documents: list[NewDocument] = []
    kept: list[tuple[int, int]] = []
    problems: list[Problem] = []
    warnings: list[str] = []
    failure: Problem | None = None
    hash: bytes | None = None
    bytes: int = 0


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A batch ready to be written: its parts in order, and the postings of all their chunks, numbered on through."""

    parts: list[Part]
    segments: list[Segment]
    remaining: tuple[Job, ...] = ()


class Tools:
    """Chunker, analyzer and a look into the index: made once a process."""

    def __init__(self, preparation: Preparation) -> None:
        from ragcli.chunk import chunk, chunker, parents
        from ragcli.text import Analyzer

        self.preparation = preparation
        self.chunk, self.parents = chunk, parents
        self.chunker = chunker(preparation.chunking, _tokenizer_source(preparation))
        self.terms = Analyzer(preparation.analyzer).terms
        self.rules = compiled_rules(preparation.rules)
        self._db: Connection | None = None

    def existing(self, source: int, raws: Sequence[str]) -> dict[str, Existing]:
        """The documents that the index holds of a source."""
        if self._db is None:
            from ragcli.store.sqlite.schema import open_reader

            self._db = open_reader(self.preparation.index)
        return documents.existing(self._db, source, raws)

    def close(self) -> None:
        """Let go of the index."""
        if self._db is not None:
            self._db.close()
            self._db = None


def _tokenizer_source(preparation: Preparation) -> TokenizerSource | None:
    if preparation.tokenizer is None:
        return None
    from ragcli import tokens
    from ragcli.models.catalogue import model

    path = Path(preparation.tokenizer)
    return lambda: tokens.load(path, model("cl100k_base").files[0].sha256)


Rules = list[tuple[re.Pattern[str], dict[str, MetadataValue]]]


def compiled_rules(rules: Mapping[str, Mapping[str, Any]]) -> Rules:
    """The globs of `ingest.tags` ready to match; `*` matches `/` too, as in a filter on `path`."""
    from fnmatch import translate

    return [
        (re.compile(translate(glob)), {key: _plain(value) for key, value in found.items()})
        for glob, found in rules.items()
    ]


def _plain(value: Any) -> MetadataValue:
    return tuple(value) if isinstance(value, list) else value


def prepare(jobs: Sequence[Job], tools: Tools, *, clock: Any = time.monotonic) -> Prepared:
    """Read, chunk, analyse and invert; `remaining` are the jobs that were not begun."""
    draft = _Draft(tools)
    end = clock() + SECONDS
    for at, job in enumerate(jobs):
        if at and (draft.is_full() or clock() > end):
            return draft.prepared(tuple(jobs[at:]))
        draft.take(job)
    return draft.prepared(())


class _Draft:
    """The batch in the making."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.parts: list[Part] = []
        self.segments: list[Segment] = []
        self.inverter = Inverter(tools.preparation.bm25)
        self.chunks = 0
        self.characters = 0

    def is_full(self) -> bool:
        return self.chunks >= CHUNKS or self.characters >= CHARACTERS

    def prepared(self, remaining: tuple[Job, ...]) -> Prepared:
        self._close_segment()
        return Prepared(parts=self.parts, segments=self.segments, remaining=remaining)

    def take(self, job: Job) -> None:
        part = Part(number=job.number, last=job.last, documents=[], kept=[], problems=[], warnings=[], hash=job.hash)
        self.parts.append(part)
        try:
            self._add(list(_read(job, part, self.tools.preparation.max_file_bytes)), job, part)
        except ReadError as error:
            part.failure = failure_of(job.source, error)
        except Exception as error:  # a parser's bug in one file must not cost the others (spec I5)
            part.failure = Problem(job.source.location, "crashed", f"{type(error).__name__}: {error}")

    def _add(self, found: list[Document], job: Job, part: Part) -> None:
        """Take what is new or changed; what the index has as it is, is only noted."""
        ready = [fingerprint(self._tagged(document, job)) for document in found]
        fresh = {one[0].id: one for one in reversed(ready)}
        old = self.tools.existing(job.known, list(fresh)) if job.known is not None and fresh else {}
        for one in ready:
            document, metadata, digest = one
            if document.warnings:
                part.warnings += [f"{job.source.location}: {warning}" for warning in document.warnings]
            same = old.get(document.id)
            if fresh[document.id] is not one:
                part.problems.append(duplicate(job.source, document.id, document.first_line))
            elif same is not None and same.hash == digest:
                part.kept.append((same.id, document.first_line))
            else:
                part.documents.append(self._new(document, metadata, digest))

    def _tagged(self, document: Document, job: Job) -> Document:
        """Front matter is overruled by the settings' tags, and these by `--tag` (spec I11)."""
        if not (self.tools.rules or job.tags):
            return document
        rules = [tags_ for pattern, tags_ in self.tools.rules if pattern.match(document.id)]
        if not (rules or job.tags):
            return document
        metadata = dict(document.metadata)
        for more in [*rules, job.tags]:
            metadata.update(more)
        return msgspec.structs.replace(document, metadata=metadata)

    def _new(self, document: Document, metadata: str | None, digest: bytes) -> NewDocument:
        tools = self.tools
        chunks = tools.chunk(document, tools.chunker, context_header=tools.preparation.chunking.context_header)
        terms = list(self._terms(chunks))
        lengths = self._invert(terms)
        self.chunks += len(chunks)
        self.characters += len(document.text)
        rows = tags.rows(document.metadata) if metadata else []
        return NewDocument(
            document.id, document.title, document.name, document.format, metadata, rows,
            document.created_at, document.updated_at, digest, document.first_line, document.text,
            [_row(one, length, document) for one, length in zip(chunks, lengths, strict=True)],
            outlines.encoded(document), self._parents(document),
        )  # fmt: skip

    def _parents(self, document: Document) -> list[parents.Row] | None:
        settings = self.tools.preparation.parents
        if settings is None:
            return None
        return [parents.row_of(one, document.first_line) for one in self.tools.parents(document, settings)]

    def _terms(self, chunks: Sequence[Chunk]) -> Iterator[list[str]]:
        """Of each chunk: its header's terms, then its own. Neighbours often share the header."""
        analyse = self.tools.terms
        context, header = "", analyse("")
        for one in chunks:
            if one.context != context:
                context, header = one.context, analyse(one.context)
            yield header + analyse(one.text)

    def _invert(self, terms: Sequence[list[str]]) -> list[int]:
        """Add one document's chunks. They stay together: a new segment begins where they would not fit."""
        if len(self.inverter) + len(terms) > BLOCK:
            self._close_segment()
        lengths = []
        for one in terms:
            if len(self.inverter) == BLOCK:
                self._close_segment()
            lengths.append(self.inverter.add(one))
        return lengths

    def _close_segment(self) -> None:
        if len(self.inverter):
            self.segments.append(self.inverter.segment())
            self.inverter = Inverter(self.tools.preparation.bm25)


def _row(chunk: Chunk, length: int, document: Document) -> ChunkRow:
    first = document.first_line
    return (
        chunk.index, chunk.start, chunk.end, chunk.start_line - first, chunk.end_line - first,
        chunk.page, chunk.page_end, chunk.heading or None, chunk.heading_level, chunk.heading_breadcrumb or None,
        documents.stored_context(document.title, chunk.context), length,
    )  # fmt: skip


def _read(job: Job, part: Part, max_bytes: int) -> Iterator[Document]:
    """The job's documents, in order. Problems of single records go into the part."""
    from ragcli.read.formats import read

    digest = blake2b(digest_size=16)
    for request in _requests(job, max_bytes):
        if isinstance(request, Problem):
            part.problems.append(located(request, job.source))
            continue
        part.bytes += len(request.data)
        digest.update(request.data)
        for item in read(request):
            if isinstance(item, Problem):
                part.problems.append(located(item, job.source))
            else:
                yield item
    if job.request is None:
        part.hash = digest.digest()


def _requests(job: Job, max_bytes: int) -> Iterator[ReadRequest | Problem]:
    if job.request is not None:
        yield job.request
        return
    from ragcli.read.load import requests

    yield from requests(job.source, max_bytes=max_bytes)


def _clean_document(document: Document) -> Document:
    """The document without NUL and lone surrogates, which SQLite can't hold; character for character."""
    metadata = {_clean(key): _clean_value(value) for key, value in document.metadata.items()}
    names = ("id", "text", "title", "name", "format")
    return msgspec.structs.replace(
        document, **{name: _clean(getattr(document, name)) for name in names}, metadata=metadata
    )


def _clean(text: str) -> str:
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


def _clean_value(value: MetadataValue) -> MetadataValue:
    if isinstance(value, tuple):
        return tuple(_clean(member) if isinstance(member, str) else member for member in value)
    return _clean(value) if isinstance(value, str) else value


def located(problem: Problem, source: Source) -> Problem:
    """The problem of a record, named by where its source is, as all others are."""
    return Problem(source.location, problem.kind, problem.reason)


def duplicate(source: Source, document_id: str, line: int) -> Problem:
    """The problem of a record whose id another record of its source has."""
    return Problem(source.location, "duplicate", f"line {line}: the id {document_id!r} was there before; not taken in")


def fingerprint(document: Document) -> tuple[Document, str | None, bytes]:
    """The document as SQLite can hold it, its metadata as JSON, and the digest of all that is stored of it.

    Where its source has it (its lines) is no part of the digest: a record may move.
    """
    try:
        return document, *_digest(document)
    except UnicodeEncodeError:
        clean = _clean_document(document)
        return clean, *_digest(clean)


def _digest(document: Document) -> tuple[str | None, bytes]:
    """Raises: UnicodeEncodeError for a NUL or a lone surrogate anywhere."""
    metadata = tags.encode(document.metadata) if document.metadata else None
    text = document.text.encode()
    rest = _encode((
        document.id, document.title, document.name, document.format, metadata, document.headings, document.pages,
        document.created_at, document.updated_at,
    ))  # fmt: skip
    if b"\0" in text or b"u0000" in rest:
        _refuse_nul(document, metadata or "")
    digest = blake2b(text, digest_size=16)
    digest.update(rest)
    return metadata, digest.digest()


_encode = msgspec.json.Encoder().encode


def _refuse_nul(document: Document, metadata: str) -> None:
    words = (document.id, document.text, document.title, document.name, document.format)
    if any("\0" in word for word in words) or "\\u0000" in metadata.replace("\\\\", ""):
        raise UnicodeEncodeError("utf-8", "", 0, 0, "a NUL")


def failure_of(source: Source, error: ReadError) -> Problem:
    """The error as a problem of this source: its message without the path that stands beside it anyway."""
    reason = error.message
    for path in (source.location, source.relative):
        if error.message.startswith(path + ": "):
            reason = error.message[len(path) + 2 :] + (f"; {error.hint}" if error.hint else "")
            break
    return Problem(source.location, error.kind, reason)
