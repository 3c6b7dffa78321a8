"""The values that flow from files to ranked hits, and the Protocols at the seams. No behaviour beyond construction.

Values are frozen, slotted `msgspec.Struct`s (a dataclass costs about 1.5 ms to define, a Struct 0.02 ms: start-up is
part of every one-shot query). Higher scores are better everywhere; a rank is a position and counts from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A metadata value keeps its kind (spec I10): True is no number, 3 is not "3". A tuple is a list of scalars.
Scalar = str | int | float | bool | date | datetime
MetadataValue = Scalar | tuple[Scalar, ...] | None
Metadata = Mapping[str, MetadataValue]
Span = tuple[int, int]  # [start, end) in characters of Document.text


class Heading(msgspec.Struct, frozen=True):
    """A heading inside a document: where it starts in `Document.text`, its level (1 = top), its plain words."""

    start: int
    level: int
    title: str


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One document as extracted text. `text` is what spans, lines and pages count in.

    `first_line` is the source line on which `text` starts (front matter above it is not part of `text`).
    `pages` holds the offset in `text` at which each page starts; () where there are no pages.
    `name` is the file name, searchable with every chunk; "" for a record of a collection (JSONL).
    `created_at`, `updated_at`: ISO 8601 UTC, only where the source knows them.
    """

    id: str
    text: str
    title: str = ""
    name: str = ""
    format: str = "text"
    metadata: Metadata = {}
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    first_line: int = 1
    created_at: str | None = None
    updated_at: str | None = None
    warnings: tuple[str, ...] = ()


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A span of a document: `text == Document.text[start:end]`. Lines are source lines, both counted in, from 1.

    `context` is the header that is indexed with the chunk (title, breadcrumb, file name) and is no part of `text`.
    `path`, `title`, `metadata` are the document's; they are empty until the chunk comes out of a store.
    """

    document_id: str
    index: int
    start: int
    end: int
    text: str
    start_line: int
    end_line: int
    page: int | None = None
    page_end: int | None = None
    heading: str = ""
    heading_level: int = 0
    heading_breadcrumb: str = ""
    context: str = ""
    path: str = ""
    title: str = ""
    metadata: Metadata = {}


class ArmScore(msgspec.Struct, frozen=True):
    """What one arm thought of a chunk: its rank there (from 1), the arm's own score, and what that adds to the hit's.

    `rank` is None of a chunk that the arm did not put among its best, and whose score was looked up for the fusion;
    `score` is None where the arm knows nothing of it (a chunk without a vector). The parts add up to the hit's score.
    """

    rank: int | None
    score: float | None
    part: float = 0.0


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk with its score. `terms` are the named parts of the BM25 score; they add up to it.

    `normalized`: an RRF score as a share of the best one there can be, 0 to 1; None of other kinds.
    `stale`: None (as ingested), "changed" or "missing" (the file behind it; spec C12).
    """

    chunk: Chunk
    score: float
    score_kind: str
    arms: Mapping[str, ArmScore] = {}
    terms: Mapping[str, float] = {}
    normalized: float | None = None
    stale: str | None = None


class EmbedderCard(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedder is: everything that changes the vectors it gives. An index keeps the card it was built with.

    `name` is what `models.embedder` calls it. `fingerprint`: a hex digest of weights, tokenizer, and all that stands
    below it; two embedders with the same one give the same vectors. `max_tokens`: its window; 0 = not known.
    `dimension` 0 = not known before the first vector (an endpoint). `asked_dimension`: what a service is asked for; 0 =
    nothing.
    """

    name: str
    fingerprint: str
    dimension: int
    precision: str = ""
    pooling: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = 0
    long: str = "windows"
    asked_dimension: int = 0


class Embedded(msgspec.Struct, frozen=True):
    """Vectors of texts: float32 (n_texts, dimension), rows of length 1.

    `problems`: row -> why that text has no vector (its row is zeros): refused, not finite, zero.
    """

    vectors: NDArray[np.float32]
    problems: Mapping[int, str] = {}


class Embedder(Protocol):
    """Texts in, vectors out; the same text gives the same vector whatever stands beside it."""

    @property
    def card(self) -> EmbedderCard: ...

    def passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages, headers included. Raises: RemoteError (endpoint), after all retries."""

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, (dimension,), of length 1. Raises: RemoteError; RagcliError where there is none."""

    def close(self) -> None: ...


class Drop(msgspec.Struct, frozen=True):
    """A hit that a stage took out, and why."""

    hit: Hit
    stage: str
    reason: str


class Ranking(msgspec.Struct, frozen=True):
    """Hits, best first unless a stage reordered them, and everything that was dropped on the way."""

    hits: tuple[Hit, ...] = ()
    dropped: tuple[Drop, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """What one stage did: hits in and out, wall seconds, the options it ran with, what it warned of."""

    stage: str
    taken: int
    given: int
    seconds: float
    options: Mapping[str, object] = {}
    warnings: tuple[str, ...] = ()


class Trace(msgspec.Struct, frozen=True):
    """The record of one retrieval, step by step. Explanations are views of it."""

    query: str
    steps: tuple[Step, ...] = ()


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `Pipeline.retrieve` gives back. `notes` explain an empty or surprising result; `warnings` a degraded one."""

    query: str
    mode: str
    ranking: Ranking
    trace: Trace
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Event(msgspec.Struct, frozen=True):
    """Progress of long work. `total` is None while unknown; `unit` is what is counted ("files", "bytes", "chunks")."""

    stage: str
    done: int = 0
    total: int | None = None
    unit: str = ""
    detail: str = ""


Listener = Callable[[Event], None]  # may be called from another thread: embedding has one of its own


def ignore_event(event: Event) -> None:
    """The listener of those who don't listen."""


class Problem(msgspec.Struct, frozen=True):
    """A source that was skipped or failed: which one, a short kind to count by, and the reason in words."""

    path: str
    kind: str  # "hidden", "ignored", "binary", "too-large", "unreadable", "encrypted", "decoding", "malformed" …
    reason: str


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One call of ingest: what the paths alone do not say.

    `tags` go onto every document of this call. `name` is the id of what comes from standard input. `prune` removes
    documents whose files are gone from the given roots; `checksum` reads every file again in place of trusting size
    and time; `delete` names documents to remove; `reset` empties the index first; `dry_run` writes nothing.
    `re_embed` drops all vectors and embeds everything anew, from the stored text, with the embedder in force.
    """

    tags: Mapping[str, Scalar] = {}
    name: str | None = None
    prune: bool = False
    checksum: bool = False
    dry_run: bool = False
    delete: tuple[str, ...] = ()
    reset: bool = False
    re_embed: bool = False


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did: counts of documents, the chunks written, the source bytes read, wall seconds.

    `skipped` were left out by a rule, `failed` could not be read. `plan` lists (state, path) of a dry run; a state is
    "new", "changed", "unchanged" or "removed". `index` is the file that was written to. `embedded` chunks went through
    the embedder, `reused` ones had the text of another; `unembedded` chunks have no vector yet.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    unembedded: int = 0
    bytes: int = 0
    seconds: float = 0.0
    skipped: tuple[Problem, ...] = ()
    failed: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    plan: tuple[tuple[str, str], ...] = ()
    index: str = ""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """An index in figures. `average_length` is in terms a chunk, `bytes` the size of the file on disk, of
    which `free` hold nothing."""

    path: str
    schema: int
    collection: str
    documents: int
    chunks: int
    terms: int
    postings: int
    total_terms: int
    average_length: float
    segments: int
    deleted_chunks: int
    bytes: int
    generation: int
    free: int = 0
    vectors: int = 0
    embedder: EmbedderCard | None = None
    roots: tuple[str, ...] = ()
    formats: Mapping[str, int] = {}
    failed: tuple[Problem, ...] = ()
    settings: Mapping[str, object] = {}


class DocumentLine(msgspec.Struct, frozen=True, kw_only=True):
    """A stored document in a list; `chunks` counts them."""

    id: str
    format: str
    chunks: int
    title: str


class DocumentView(msgspec.Struct, frozen=True, kw_only=True):
    """A stored document with its chunks. `characters` is the length of `text`, `size` its source's bytes.

    `size` is None of standard input.
    """

    id: str
    path: str
    title: str
    format: str
    metadata: Metadata
    created_at: str | None
    updated_at: str | None
    ingested_at: str | None
    size: int | None
    characters: int
    first_line: int
    chunks: tuple[Chunk, ...]
    stale: str | None
    text: str


class ChunkView(msgspec.Struct, frozen=True, kw_only=True):
    """A stored chunk as the keyword index sees it: term -> frequency, length in terms; neighbours as "id#index"."""

    chunk: Chunk
    stale: str | None
    terms: Mapping[str, int]
    length: int
    previous: str | None
    next: str | None


class TermStat(msgspec.Struct, frozen=True, kw_only=True):
    """One term of the index. `postings` are the first (chunk "id#index", frequency); `total` is how often it occurs.

    `document_frequency` counts live chunks, the unit of `idf`; that of a term nobody has is ln(1 + (N + 0.5) / 0.5).
    """

    term: str
    document_frequency: int
    idf: float
    postings: tuple[tuple[str, int], ...]
    total: int


class TermView(msgspec.Struct, frozen=True, kw_only=True):
    """A word as asked for and the terms that the analyzer makes of it."""

    word: str
    terms: tuple[TermStat, ...]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to read: a file found by the walk, or standard input.

    `root` and `relative` (always with `/`) name it; `location` is the absolute path to open ("-" = stdin).
    """

    root: str
    relative: str
    location: str
    size: int
    mtime_ns: int


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a format's reader gets: the file's bytes, and what the walk knows.

    Of a line-oriented collection (JSONL) `data` may be a run of whole lines that starts on line `first_line`.
    """

    source: Source
    data: bytes
    first_line: int = 1


class Reader(Protocol):
    """A format: bytes in, documents out, streamed. Raises a `ReadError` for a source it can't serve.

    A `Problem` in the stream is one record that can't be read; those around it go in.

    Reads nothing but `request` and runs no code of the document (spec I38).
    """

    def __call__(self, request: ReadRequest) -> Iterable[Document | Problem]: ...


class Chunker(Protocol):
    """A chunking strategy: the spans of a document's text, ascending. Its fields are its options (spec I20)."""

    def __call__(self, document: Document) -> list[Span]: ...


class Corpus(Protocol):
    """The little that a stage may ask for."""

    def now(self) -> datetime: ...


class Stage(Protocol):
    """A step of the pipeline after retrieval: pure, order-preserving unless that is its work (design: stages)."""

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking: ...


__all__ = [
    "ArmScore", "Chunk", "ChunkView", "Chunker", "Corpus", "Document", "DocumentLine", "DocumentView", "Drop",
    "Embedded", "Embedder", "EmbedderCard", "Event",
    "Heading", "Hit", "IngestOptions", "IngestReport", "Iterator", "Listener", "Metadata", "MetadataValue",
    "Problem", "Ranking", "ReadRequest", "Reader", "Result", "Scalar", "Sequence", "Source", "Span", "Stage", "Stats",
    "Step", "TermStat", "TermView", "Trace", "ignore_event",
]  # fmt: skip
