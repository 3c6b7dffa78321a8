"""Every setting, typed, with its default and its range, checked when made. The same names in YAML, Python and flags.

Owns no file, no environment, no flag: `config` fills these from them. A value out of range is an `OptionError` that
names the option, the value and the range (spec R1).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal

import msgspec

from ragcli.errors import OptionError

MIB = 1024 * 1024
LARGEST_TOP_K = 1_000_000  # more than any reader reads; a slip of the keyboard otherwise fills the memory

Mode = Literal["hybrid", "vector", "keyword"]
FusionMethod = Literal["relative", "zscore", "rrf"]
Precision = Literal["int8", "fp32"]
Pooling = Literal["mean", "cls"]
LongTexts = Literal["windows", "refuse"]
FinalSelection = Literal["reranker_only", "weighted_blend"]
MmrRelevance = Literal["score", "cosine"]
Compression = Literal["none", "extractive", "llm"]
Engine = Literal["extractive", "openai", "gguf"]
SourcesAs = Literal["user", "tool"]
LOCAL_CHATS = ("smollm2-135m", "qwen2.5-coder-0.5b")  # values of `chat.model` that run here: those of the catalogue
SERVICE, HUB = "openai:", "hub:"  # what `models.embedder` starts with where it names no file here
MMR_MULTIPLIER = 3  # candidates for each of top_k, where nothing else is asked for (spec P2)
ARMS = ("bm25", "dense")  # in the order in which they are shown
Unit = Literal["characters", "tokens"]
Format = Literal["table", "json", "jsonl", "csv", "tsv", "md", "paths", "trec"]


def _within(option: str, value: float, low: float, high: float, allowed: str) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise OptionError(option, value, allowed)


class Condition(msgspec.Struct, frozen=True):
    """One metadata condition: `key` has exactly this value, kind included (spec R9, I10).

    The key `path` is matched against the document id as a glob.
    """

    key: str
    value: Any  # a types.Scalar; the decoder of settings can't tell str from date in that union


class IngestSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is read, and how much at a time."""

    include: tuple[str, ...] = ()  # globs; when given, only these
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    gitignore: bool = True
    max_file_bytes: int = 64 * MIB  # of one file, or of one record of a collection
    workers: int = 0  # processes that parse; 0 = one a core
    tags: Mapping[str, Mapping[str, Any]] = {}  # glob on the document id -> metadata (spec I11)

    def __post_init__(self) -> None:
        _within("ingest.max_file_bytes", self.max_file_bytes, 1, 2**40, "1 byte to 1 TiB")
        _within("ingest.workers", self.workers, 0, 256, "0 (one a core) to 256")


class ChunkingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How documents are cut. 1600 characters with a header is the measured default (spec I20, I24)."""

    strategy: str = "recursive"  # a name of the registry, or package.module:Class
    size: int = 1600
    overlap: int = 160
    unit: Unit = "characters"
    context_header: bool = True

    def __post_init__(self) -> None:
        _within("chunking.size", self.size, 1, 2**31, "1 or more")
        _within("chunking.overlap", self.overlap, 0, 2**31, "0 or more")
        if self.overlap >= self.size:
            raise OptionError("chunking.overlap", self.overlap, f"less than chunking.size, which is {self.size}")


class ParentsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parents: larger chunks of the same text, from a second pass, that stand in for the chunks found (spec I23).

    `enabled`: the index keeps them; ingest cuts those that are missing, whatever it was built with.
    """

    enabled: bool = False
    size: int = 2048  # characters
    overlap: int = 100  # characters, at most, that two of them share

    def __post_init__(self) -> None:
        _within("parents.size", self.size, 1, 2**31, "1 or more")
        _within("parents.overlap", self.overlap, 0, 2**31, "0 or more")
        if self.overlap >= self.size:
            raise OptionError("parents.overlap", self.overlap, f"less than parents.size, which is {self.size}")


class AnalyzerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How text becomes terms (spec I33). Nothing language-specific unless asked for."""

    stemmer: str = "none"  # a Snowball language: english, german …
    stopwords: str = "none"  # a language with a list in ragcli
    fold_accents: bool = False  # café = cafe


class Bm25Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Robertson et al., Okapi at TREC-3: k1 saturates term frequency, b normalises by length."""

    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        _within("bm25.k1", self.k1, 0.0, 1000.0, "0 to 1000")
        _within("bm25.b", self.b, 0.0, 1.0, "0 to 1")


class ModelsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which models run here, and how.

    `embedder` is a name of the catalogue ("minilm"), "none" (keyword search only), a folder with an ONNX model, a hub
    id ("hub:organisation/name"), or "openai:MODEL" for an OpenAI-compatible endpoint (see EmbeddingSettings).
    """

    embedder: str = "minilm"
    precision: Precision = "int8"  # of what we convert ourselves
    threads: int = 0  # 0 = one a core
    folder: str | None = None  # NAME/FILE below it are taken before anything is fetched

    def __post_init__(self) -> None:
        if not self.embedder.strip():
            raise OptionError("models.embedder", self.embedder, "a name, a folder or none")
        _within("models.threads", self.threads, 0, 256, "0 (one a core) to 256")


class EmbeddingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How texts become vectors. None = as the model's own card says."""

    query_prefix: str | None = None
    passage_prefix: str | None = None
    pooling: Pooling | None = None
    max_tokens: int | None = None  # the model's window
    long: LongTexts = "windows"  # a text longer than the window: the mean of its windows, or refused (spec I22)
    base_url: str | None = None  # of an OpenAI-compatible service, up to and with /v1
    api_key: str | None = None
    dimensions: int | None = None  # asked of the service
    batch_texts: int = 64  # in one request
    batch_tokens: int = 8000  # in one request, at four bytes of UTF-8 a token
    requests_per_minute: float | None = None
    timeout_seconds: float = 60.0
    retries: int = 5  # of a request that failed in passing (429, 5xx, connection)

    def __post_init__(self) -> None:
        for name in ("max_tokens", "dimensions"):
            if (value := getattr(self, name)) is not None:
                _within(f"embedding.{name}", value, 1, 2**20, "1 to 1048576")
        _within("embedding.batch_texts", self.batch_texts, 1, 100_000, "1 to 100000")
        _within("embedding.batch_tokens", self.batch_tokens, 1, 100_000_000, "1 to 100000000")
        if self.requests_per_minute is not None:
            _within("embedding.requests_per_minute", self.requests_per_minute, 0.001, 1e9, "0.001 to 1e9")
        _within("embedding.timeout_seconds", self.timeout_seconds, 0.001, 86400, "0.001 to 86400")
        _within("embedding.retries", self.retries, 0, 100, "0 to 100")


class FusionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the arms' rankings become one (spec R5, R6).

    `weights`: arm ("bm25", "dense") to weight; an arm that is not named has the method's default (1 for `rrf`, else
    0.5), one of weight 0 does not run.
    """

    method: FusionMethod = "relative"
    weights: Mapping[str, float] = {}
    rrf_k: int = 60
    normalize: bool = False  # divide an RRF score by the best one there can be
    depth: int = 100  # candidates that each arm gives to the fusion, at least

    def __post_init__(self) -> None:
        for arm, weight in self.weights.items():
            if arm not in ARMS:
                raise OptionError("fusion.weights", arm, f"arms are {', '.join(ARMS)}")
            _within(f"fusion.weights.{arm}", weight, 0.0, 1e6, "0 to 1000000")
        if self.weights and not any(self.weight(arm) for arm in ARMS):
            raise OptionError("fusion.weights", dict(self.weights), "at least one weight above 0")
        _within("fusion.rrf_k", self.rrf_k, 1, 1_000_000, "1 to 1000000")
        _within("fusion.depth", self.depth, 1, LARGEST_TOP_K, f"1 to {LARGEST_TOP_K}")

    def weight(self, arm: str) -> float:
        """The weight of an arm."""
        return self.weights.get(arm, 1.0 if self.method == "rrf" else 0.5)


class ChatSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The language model that answers, judges and condenses.

    `model`: its name at an OpenAI-compatible service with chat completions; or, where no `base_url` is set, a .gguf
    file or a chat model of the catalogue, which runs here. A key comes from the environment, never from a settings
    file: `key_variable` names the variable (default OPENAI_API_KEY). `context_window`: the tokens that it holds, prompt
    and reply together; None = as the model here says, of a service not known.
    """

    model: str | None = None
    base_url: str | None = None  # up to and with /v1; None = OPENAI_BASE_URL, else OpenAI's own
    key_variable: str | None = None
    temperature: float = 0.0
    requests_per_minute: float | None = None
    timeout_seconds: float = 60.0
    retries: int = 2
    context_window: int | None = None

    def __post_init__(self) -> None:
        _within("chat.temperature", self.temperature, 0.0, 2.0, "0 to 2")
        if self.context_window is not None:
            _within("chat.context_window", self.context_window, 128, 2**31, "128 or more")
        _check_service("chat", self)


class AnswerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How `ask` makes an answer of what was retrieved (spec 4).

    `engine`: None = "extractive" where no `chat.model` is set, else by what that names. `system` replaces the system
    prompt. `max_tokens`: of an answer; so many are kept free in the model's window. `sources_as`: whose turn holds the
    sources. `always`: ask the model even where nothing relevant was found.
    """

    engine: Engine | None = None
    system: str | None = None
    max_tokens: int = 1024
    seed: int | None = None
    sources_as: SourcesAs = "user"
    stream: bool = True  # let a service send the answer as it is written
    always: bool = False
    min_cosine: float = 0.32  # below it, and below min_coverage, there is no confident answer (`answer.confidence`)
    min_coverage: float = 0.4  # share of the question's terms, by idf, that the best source holds
    sentences: int = 3  # of an extractive answer, at most
    rewrite: bool = True  # a question that follows on others is made one that stands alone, for the retrieval
    verify: bool = False
    strict_citations: bool = False
    renumber: bool = False

    def __post_init__(self) -> None:
        _within("answer.max_tokens", self.max_tokens, 1, 2**31, "1 or more")
        _within("answer.min_cosine", self.min_cosine, -1.0, 1.0, "-1 to 1")
        _within("answer.min_coverage", self.min_coverage, 0.0, 1.0, "0 to 1")
        _within("answer.sentences", self.sentences, 1, 1000, "1 to 1000")
        if self.seed is not None:
            _within("answer.seed", self.seed, 0, 2**32 - 1, "0 to 4294967295")
        if self.system is not None and not self.system.strip():
            raise OptionError("answer.system", self.system, "some text")


class RerankSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who judges the candidates anew, and what becomes of its scores (spec P3-P6).

    `reranker`: "none", "onnx", "cohere", "jina", "vllm", "llm", or "python:module:attribute". `model`: its model; of
    "onnx" a name of the catalogue, a folder, or "hub:organisation/name". A key comes from the environment, never from a
    settings file: `key_variable` names the variable (defaults: COHERE_API_KEY, JINA_API_KEY, VLLM_API_KEY).
    """

    reranker: str = "none"
    model: str | None = None
    base_url: str | None = None
    key_variable: str | None = None
    max_tokens: int | None = None  # of query and passage together (onnx); None = the model's window, 512 at most
    min_score: float | None = None  # lowest score of the reranker, on its own scale; None = no floor
    final: FinalSelection = "reranker_only"
    retrieval_weight: float = 0.65  # of the retrieval score in a weighted blend
    skip_when_few: bool = False  # leave the order as it is where there are no more candidates than top_k
    time_budget_seconds: float | None = None  # after which the order before it is kept
    requests_per_minute: float | None = None
    timeout_seconds: float = 60.0
    retries: int = 2

    def __post_init__(self) -> None:
        if not self.reranker.strip():
            raise OptionError("rerank.reranker", self.reranker, "a reranker or none")
        if self.max_tokens is not None:
            _within("rerank.max_tokens", self.max_tokens, 1, 2**20, "1 to 1048576")
        if self.min_score is not None:
            _within("rerank.min_score", self.min_score, -1e6, 1e6, "-1000000 to 1000000")
        _within("rerank.retrieval_weight", self.retrieval_weight, 0.0, 1.0, "0 to 1")
        if self.time_budget_seconds is not None:
            _within("rerank.time_budget_seconds", self.time_budget_seconds, 0.001, 86400, "0.001 to 86400")
        _check_service("rerank", self)


def _check_service(section: str, settings: ChatSettings | RerankSettings) -> None:
    if settings.requests_per_minute is not None:
        _within(f"{section}.requests_per_minute", settings.requests_per_minute, 0.001, 1e9, "0.001 to 1e9")
    _within(f"{section}.timeout_seconds", settings.timeout_seconds, 0.001, 86400, "0.001 to 86400")
    _within(f"{section}.retries", settings.retries, 0, 100, "0 to 100")


class RetrievalOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One call of retrieval (spec R1). What is None is on where it is configured: a reranker, an index with parents."""

    top_k: int = 5
    mode: Mode = "hybrid"  # an index without vectors serves it by keywords alone
    exact: bool = False  # dense search compares every vector, whatever the size of the index
    min_score: float = 0.0  # lowest cosine of a dense hit, before fusion; BM25 hits are not cut by it (spec R4)
    metadata_filter: tuple[Condition, ...] = ()
    where: str = ""
    per_document: int | None = None  # at most so many hits of one document; None = no limit
    candidate_multiplier: int = 3
    candidate_count: int | None = None  # None = top_k x candidate_multiplier
    redundancy_filter: bool = False
    redundancy_threshold: float = 0.95  # cosine with a better hit, from which on a hit is dropped
    mmr: bool = False
    mmr_lambda: float = 0.5  # 1 = order by relevance, 0 = most different
    mmr_candidate_count: int | None = None  # None = top_k x 3
    mmr_relevance: MmrRelevance = "score"  # what is relevant: a high score so far, or a high cosine with the query
    mmr_keep: int | None = None  # what MMR leaves to the reranker; None = top_k
    rerank: bool | None = None
    parent_document: bool | None = None
    max_context_tokens: int | None = None  # of the prompt's sources in cl100k_base; None = no limit
    compression: Compression = "none"
    compression_sentences: int = 3  # that an extract of a hit keeps, at most
    lost_in_the_middle: bool = False

    def __post_init__(self) -> None:
        _within("retrieval.top_k", self.top_k, 1, LARGEST_TOP_K, f"1 to {LARGEST_TOP_K}")
        _within("retrieval.min_score", self.min_score, -1.0, 1.0, "-1 to 1")
        _within("retrieval.candidate_multiplier", self.candidate_multiplier, 1, 1000, "1 to 1000")
        _within("retrieval.redundancy_threshold", self.redundancy_threshold, -1.0, 1.0, "-1 to 1")
        _within("retrieval.mmr_lambda", self.mmr_lambda, 0.0, 1.0, "0 to 1")
        _within("retrieval.compression_sentences", self.compression_sentences, 1, 1000, "1 to 1000")
        for name in ("per_document", "candidate_count", "mmr_candidate_count", "mmr_keep"):
            if (value := getattr(self, name)) is not None:
                _within(f"retrieval.{name}", value, 1, LARGEST_TOP_K, f"1 to {LARGEST_TOP_K}")
        if self.max_context_tokens is not None:
            _within("retrieval.max_context_tokens", self.max_context_tokens, 1, 2**31, "1 or more")

    @property
    def candidates(self) -> int:
        """How many hits an arm gives to the stages after it: never fewer than `top_k`."""
        wanted = self.candidate_count or self.top_k * self.candidate_multiplier
        return max(wanted, self.top_k)

    @property
    def mmr_picks(self) -> int:
        """How many hits MMR leaves: never fewer than `top_k`."""
        return max(self.mmr_keep or self.top_k, self.top_k)

    @property
    def mmr_candidates(self) -> int:
        """How many hits MMR picks from: never fewer than it leaves."""
        return max(self.mmr_candidate_count or self.top_k * MMR_MULTIPLIER, self.mmr_picks)


class OutputSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How results are shown. None = a table."""

    format: Format | None = None


class IndexSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the index is (spec I30) and what the collection in it is called (spec I36)."""

    path: str | None = None
    collection: str = "default"

    def __post_init__(self) -> None:
        if not self.collection.strip():
            raise OptionError("index.collection", self.collection, "a name")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it: the shape of `ragcli.yaml`."""

    index: IndexSettings = IndexSettings()
    ingest: IngestSettings = IngestSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    parents: ParentsSettings = ParentsSettings()
    analyzer: AnalyzerSettings = AnalyzerSettings()
    bm25: Bm25Settings = Bm25Settings()
    models: ModelsSettings = ModelsSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    fusion: FusionSettings = FusionSettings()
    retrieval: RetrievalOptions = RetrievalOptions()
    rerank: RerankSettings = RerankSettings()
    chat: ChatSettings = ChatSettings()
    answer: AnswerSettings = AnswerSettings()
    output: OutputSettings = OutputSettings()
