"""The values that flow from files to ranked hits, and the Protocols at the seams. No behaviour beyond construction.

Values are frozen, slotted `msgspec.Struct`s (a dataclass costs about 1.5 ms to define, a Struct 0.02 ms: start-up is
part of every one-shot query). Higher scores are better everywhere; a rank is a position and counts from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from math import fsum
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


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage did to a hit that it kept: the score before and after it, and the parts that add up to the latter.

    A stage that leaves the score as it was gives no `parts`. `note`: what else led to it, in words.
    """

    stage: str
    before: float
    kind_before: str
    score: float
    kind: str
    parts: Mapping[str, float] = {}
    note: str = ""


class Parent(msgspec.Struct, frozen=True):
    """That a hit shows a parent in place of its chunk: which of the document's parents, and of which found chunks.

    `children` are indices of chunks, the best one first: the hit keeps that one's index, score and arms.
    """

    index: int
    children: tuple[int, ...]


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk with its score. `terms` are the named parts of the BM25 score; they add up to it.

    `normalized`: an RRF score as a share of the best one there can be, 0 to 1; None of other kinds.
    `stale`: None (as ingested), "changed" or "missing" (the file behind it; spec C12).
    `marks`: what stages did to it, in their order. `rank` (from 1) is set where hits no longer stand in that order.
    `parent`: set where text, span and lines of `chunk` are those of a parent; its index stays the child's.
    `compressed_text`: what a compression left of the text, which stays whole.
    """

    chunk: Chunk
    score: float
    score_kind: str
    arms: Mapping[str, ArmScore] = {}
    terms: Mapping[str, float] = {}
    normalized: float | None = None
    stale: str | None = None
    marks: tuple[Mark, ...] = ()
    rank: int | None = None
    parent: Parent | None = None
    compressed_text: str | None = None

    @property
    def retrieved(self) -> tuple[float, str]:
        """The score that retrieval gave it, and its kind, whatever stages made of it."""
        return (self.marks[0].before, self.marks[0].kind_before) if self.marks else (self.score, self.score_kind)

    def marked(self, stage: str, note: str) -> Hit:
        """The same hit, with what a stage has to say of it."""
        mark = Mark(
            stage=stage, before=self.score, kind_before=self.score_kind, score=self.score, kind=self.score_kind,
            note=note,
        )  # fmt: skip
        return msgspec.structs.replace(self, marks=(*self.marks, mark))

    def rescored(self, stage: str, kind: str, parts: Mapping[str, float], note: str = "") -> Hit:
        """The same hit with a new score: the sum of `parts`."""
        score = fsum(parts.values())
        mark = Mark(
            stage=stage, before=self.score, kind_before=self.score_kind, score=score, kind=kind, parts=parts, note=note
        )
        return msgspec.structs.replace(self, score=score, score_kind=kind, marks=(*self.marks, mark))


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
    """Hits, best first unless a stage reordered them, and everything that was dropped on the way.

    `warnings`: what stages have to say of a result that is less than was asked for.
    """

    hits: tuple[Hit, ...] = ()
    dropped: tuple[Drop, ...] = ()
    warnings: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """What one stage did: hits in and out, wall seconds, the options it ran with, what it warned of.

    `order`: (document id, chunk index) of the hits that came out, in their order; () of an arm, whose ranks are in the
    hits.
    """

    stage: str
    taken: int
    given: int
    seconds: float
    options: Mapping[str, object] = {}
    warnings: tuple[str, ...] = ()
    order: tuple[tuple[str, int], ...] = ()


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
    the embedder, `reused` ones had the text of another; `unembedded` chunks have no vector yet. `parents` were cut,
    `parents_removed` are no longer kept; of a dry run, `unparented` stored documents would get parents.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    unembedded: int = 0
    parents: int = 0
    parents_removed: int = 0
    unparented: int = 0
    bytes: int = 0
    seconds: float = 0.0
    skipped: tuple[Problem, ...] = ()
    failed: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    plan: tuple[tuple[str, str], ...] = ()
    index: str = ""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """An index in figures. `average_length` is in terms a chunk, `bytes` the size of the file on disk, of
    which `free` hold nothing. `unparented` documents wait for their parents."""

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
    parents: int = 0
    unparented: int = 0
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
    """A stored chunk as the keyword index sees it: term -> frequency, length in terms; neighbours as "id#index".

    `parent`: where the index keeps them, the one that the chunk belongs to; its index is that among parents.
    """

    chunk: Chunk
    stale: str | None
    terms: Mapping[str, int]
    length: int
    previous: str | None
    next: str | None
    parent: Chunk | None = None


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


class Place(msgspec.Struct, frozen=True):
    """Where a text stands: in which document, and in which of its chunks.

    `chunks`: indices of those that hold all of it; `parts`: of those that hold a part, where none holds it all.
    """

    document_id: str
    chunks: tuple[int, ...]
    parts: tuple[int, ...] = ()


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


class Relevance(msgspec.Struct, frozen=True):
    """What a reranker says of passages, in the order in which they were given; higher is better.

    `scores`: None where it has no judgement. `logits`: they have no bounds, and are shown by the logistic function,
    1 / (1 + e^-x); else they are shown as they are. `warnings`: of passages that were not read whole, or not judged.
    """

    scores: tuple[float | None, ...]
    logits: bool = False
    warnings: tuple[str, ...] = ()


class Reranker(Protocol):
    """Judges how relevant passages are to a query, each by itself (spec P4)."""

    @property
    def name(self) -> str:
        """What a trace calls it: the kind and its model, no key."""

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        """Raises: RagcliError (RemoteError of a service): there is no judgement at all."""

    def close(self) -> None: ...


class ToolCall(msgspec.Struct, frozen=True):
    """That an assistant's turn asks for the result of a function: its name, its arguments as JSON."""

    id: str
    function: str
    arguments: str


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn of a conversation with a language model. `role`: "system", "user", "assistant" or "tool".

    `tool_calls`: of an assistant that asks for something; `tool_call_id`: of the tool's turn that answers it.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the model's server counts them: of the prompt it read, of what it wrote. None: it does not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How a reply is wanted. `max_tokens`: the longest one. `stream`: piece by piece, as it is written."""

    max_tokens: int | None = None
    seed: int | None = None
    stream: bool = True


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a language model wrote.

    `finish`: why it ended, in its server's word ("stop", "length" …); "" where that is not known. `reasoning`: what it
    thought before, apart from the text. `problem`: why this is not the whole of it; "" of a whole one. `notes`: what
    was asked for and not done.
    """

    text: str
    finish: str = ""
    reasoning: str = ""
    usage: Usage = Usage()
    problem: str = ""
    notes: tuple[str, ...] = ()


class Chat(Protocol):
    """A language model: messages in, the text of its reply out. Each call stands by itself; nothing is remembered."""

    @property
    def name(self) -> str:
        """What a trace calls it; no key."""

    def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        """Raises: RemoteError, after all retries; RagcliError where the reply holds no text."""

    def close(self) -> None: ...


class ChatModel(Chat, Protocol):
    """A language model that answers people: piece by piece, with all that there is to know of its reply."""

    @property
    def window(self) -> int | None:
        """The tokens of prompt and reply that it can hold; None = not known."""

    def write(self, messages: Sequence[Message], wish: Wish, on_text: Callable[[str], None]) -> ChatReply:
        """The reply; `on_text` gets each piece of its text as it comes, which joined are that text.

        What breaks off after it has begun is given back with its `problem`.
        Raises: RemoteError, after all retries: nothing came; RagcliError where the reply holds no text.
        """

    def count(self, text: str) -> int | None:
        """The tokens of the text, by the model's own tokenizer; None where that can't be asked."""


class Part(msgspec.Struct, frozen=True):
    """A line of a prompt's ledger. `name`: "system", "history", "source", "question" or "frame" (roles and labels).

    `source` numbers sources from 1.
    """

    name: str
    tokens: int
    source: int | None = None


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What a language model is sent, and what it is made of.

    `sources` in their order in the prompt, numbered from 1. `parts` add up to `tokens`, by the tokenizer `counted_by`.
    `window`: what the model holds, `reserve`: what is kept free in it for the answer, `limit`: what the prompt may
    have; None = not known. `forged`: (source number, places in it that looked like parts of a prompt, and were
    escaped).
    """

    messages: tuple[Message, ...]
    sources: tuple[Hit, ...]
    parts: tuple[Part, ...]
    tokens: int
    counted_by: str
    window: int | None = None
    reserve: int = 0
    limit: int | None = None
    dropped: tuple[Drop, ...] = ()
    forged: tuple[tuple[int, int], ...] = ()
    warnings: tuple[str, ...] = ()


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """That an answer names a source: the marker as it is written, `text[start:end]` of the answer, and whose number.

    `valid`: a source of that number was sent. `supported`: whether that source supports the sentence; None = not tried.
    """

    marker: str
    source: int
    start: int
    end: int
    valid: bool
    supported: bool | None = None


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of an answer, `text[start:end]`, held against the sources (spec A9).

    `cited`: the sources it names; `supporting`: those that say so, of all that were sent; `supported`: whether one that
    it names is among them, or, of a sentence that names none, any. `by`: the source that comes nearest to saying so,
    and `support`: how near, 0 to 1. `why`: why it is not supported, in words.
    """

    text: str
    start: int
    end: int
    cited: tuple[int, ...]
    supported: bool
    supporting: tuple[int, ...]
    by: int | None
    support: float
    why: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `Pipeline.ask` gives back.

    `outcome`: "answered"; "incomplete": it broke off, `text` is what came; "no-answer": nothing relevant was retrieved,
    no model was asked, and `text` says so. `engine`: "extractive", or the model's name. `search`: what was sought.
    `sources` in the order of their numbers. `renumbered`: number as it was -> number as it is. `statements` are there
    when citations were verified. `prompt`: what was sent; None of an engine that is sent none. `timings` in seconds.
    `warnings` are of a degraded answer, those of the retrieval included; `notes` explain.
    """

    question: str
    search: str
    text: str
    outcome: str
    engine: str
    sources: tuple[Hit, ...]
    result: Result
    citations: tuple[Citation, ...] = ()
    statements: tuple[Statement, ...] = ()
    renumbered: Mapping[int, int] = {}
    prompt: Prompt | None = None
    usage: Usage = Usage()
    finish: str = ""
    reasoning: str = ""
    problem: str = ""
    timings: Mapping[str, float] = {}
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Observer(Protocol):
    """Is shown the exact messages, in their order, just before they are sent. What it raises never harms the answer."""

    def __call__(self, messages: Sequence[Message]) -> None: ...


class Lens(Protocol):
    """What judging texts takes: their terms, what a term is worth in the index, and what they mean."""

    def terms(self, text: str) -> list[str]:
        """As the index cuts them."""

    def idf(self, terms: Sequence[str]) -> Mapping[str, float]:
        """Of each distinct term, 0 or more."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """(n_texts, dimension), rows of length 1 or 0; None where the index has no vectors or its embedder is away."""

    def query_vector(self, text: str) -> NDArray[np.float32] | None:
        """That of a query, (dimension,); None likewise."""

    def problem(self) -> str:
        """Why texts could not be embedded; "" where they could, or nobody asked."""


class Corpus(Protocol):
    """The little that a stage may ask for. Nothing is computed before it is asked for."""

    def now(self) -> datetime: ...

    def query_vector(self) -> NDArray[np.float32]:
        """That of the query, (dimension,), of length 1. Raises: IndexMismatch (no vectors), RemoteError."""

    def vectors(self, hits: Sequence[Hit]) -> NDArray[np.float32]:
        """Those of the chunks, (n_hits, dimension), rows of length 1; of what has none, zeros.

        Stored ones; what has none stored is embedded, in one batch. Raises: IndexMismatch (no vectors), RemoteError.
        """

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Those of texts, embedded now, (n_texts, dimension), rows of length 1 or zeros. Raises: as `vectors`."""

    def parents(self, hits: Sequence[Hit]) -> Sequence[Chunk]:
        """The parent of each hit's chunk, its index that among the document's parents.

        Raises: IndexMismatch: the index keeps none. RagcliError: it has none of one of these.
        """

    def tokens(self, text: str) -> int:
        """How many tokens (cl100k_base) the text has, or a few more where they could only be estimated."""

    def tokens_are_estimated(self) -> str:
        """Why `tokens` could only estimate; "" where it counts."""


class Stage(Protocol):
    """A step of the pipeline after retrieval: pure, order-preserving unless that is its work (design: stages).

    Raises: RagcliError: it can't do its work; the ranking then stays as it was, and a warning says so.
    """

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking: ...


__all__ = [
    "Answer", "ArmScore", "Chat", "ChatModel", "ChatReply", "Chunk", "ChunkView", "Chunker", "Citation",
    "Corpus", "Document", "DocumentLine", "DocumentView", "Drop",
    "Embedded", "Embedder", "EmbedderCard", "Event",
    "Heading", "Hit", "IngestOptions", "IngestReport", "Iterator", "Lens", "Listener", "Mark", "Message", "Metadata",
    "MetadataValue", "Observer", "Parent", "Part", "Place",
    "Problem", "Prompt", "Ranking", "ReadRequest", "Reader", "Relevance", "Reranker", "Result", "Scalar",
    "Sequence", "Source", "Span", "Stage", "Statement", "Stats", "Step", "TermStat", "TermView", "ToolCall", "Trace",
    "Usage", "Wish",
    "ignore_event",
]  # fmt: skip
