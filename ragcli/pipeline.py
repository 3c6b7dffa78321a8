"""Query in, ranked hits out: opens what the settings name, runs the arms and the stages, records every step.

The pipeline is one loop over a list of stages. Explanations are views of the trace that it leaves, so they can't
contradict the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragcli import shortage
from ragcli.arms import Arm, DenseArm, KeywordArm, QueryVector
from ragcli.corpus import ADD_PARENTS, IndexCorpus, Promise
from ragcli.errors import IndexMismatch, IndexUnusable, ModelMissing, RagcliError, RemoteError, UsageError
from ragcli.models import guard
from ragcli.options import Engine, Mode, RetrievalOptions, Settings
from ragcli.retrieval import DEEPEST, Call, Retrieval, Stages
from ragcli.sequence import Tools, sequence, thinning
from ragcli.store.sqlite.store import SqliteStore
from ragcli.types import (
    Answer,
    ChatModel,
    Embedder,
    EmbedderCard,
    Lens,
    Listener,
    Message,
    Reranker,
    Result,
    Trace,
    ignore_event,
)

if TYPE_CHECKING:
    from types import TracebackType

    from ragcli.asking import Draft, Hearing, Question
    from ragcli.models.place import ModelPlace
    from ragcli.prompt import Window
    from ragcli.store.sqlite.inspect import Inspector
    from ragcli.tokens import Tokenizer

ADD_VECTORS = "add them: ragcli ingest --re-embed"
SET_RERANKER = "set one: --reranker onnx --rerank-model FOLDER, or rerank.reranker: onnx, cohere, jina, vllm, llm"
NONE = "none"  # the reranker of those who want none


class Pipeline:
    """An open index with its settings. A context manager; not shared between threads.

    ::

        with Pipeline.open(Path(".ragcli/index.db")) as pipeline:
            for hit in pipeline.retrieve("torque sensor").ranking.hits:
                print(hit.score, hit.chunk.path, hit.chunk.start_line)
    """

    def __init__(
        self,
        store: SqliteStore,
        settings: Settings,
        *,
        explicit: Collection[str] | None = None,
        listen: Listener = ignore_event,
        models: Callable[[], ModelPlace] | None = None,
    ) -> None:
        self._store, self._explicit = store, explicit
        self._listen, self._models = listen, models
        self._embedder: tuple[EmbedderCard, Embedder] | None = None
        self._reranker: Promise[Reranker] = Promise(self._open_reranker)
        self._chat: Promise[ChatModel] = Promise(self._open_chat)
        self._tokenizer: Promise[Tokenizer] = Promise(self._open_tokenizer)
        self.settings = settings

    @classmethod
    def open(
        cls,
        index: Path,
        settings: Settings | None = None,
        *,
        explicit: Collection[str] | None = None,
        listen: Listener = ignore_event,
        models: Callable[[], ModelPlace] | None = None,
    ) -> Pipeline:
        """The index at `index`. `explicit`: the dotted settings that the user chose, which it must have been built
        with (None: those that differ from the built-in defaults); for the others it keeps its own. `models` tells where
        models are kept, by default as the environment says.

        Raises: IndexMissing, IndexCorrupt, IndexMismatch, IndexLocked.
        """
        chosen = settings or Settings()
        store = SqliteStore.open(index, chosen, explicit)
        return cls(store, store.settings, explicit=explicit, listen=listen, models=models)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the index and the models back."""
        self._store.close()
        if self._embedder is not None:
            self._embedder[1].close()
        for opened in (self._reranker.made, self._chat.made):
            if opened is not None:
                opened.close()

    @property
    def inspector(self) -> Inspector:
        """A look into the index (spec A11)."""
        from ragcli.store.sqlite.inspect import Inspector

        return Inspector(self._store)

    def retrieve(self, query: str, options: RetrievalOptions | None = None) -> Result:
        """The best hits for `query`, with the record of how they came about.

        An index without vectors serves the mode "hybrid" by keywords alone, and the result's mode says so.
        Raises: UsageError for a blank query, OptionError, ExpressionError; IndexMismatch when vectors or
        parents are asked for that the index has not; IndexCorrupt; in mode "vector" ModelMissing, RemoteError.
        """
        if not query.strip():
            raise UsageError("the query is empty", "give at least one word")
        chosen = options or self.settings.retrieval
        first = thinning(chosen)
        while True:
            ready = self._made_ready(chosen)  # a model may have to be fetched: not while a snapshot is held
            with self._store.snapshot():
                if self._store.card() == ready.card:
                    tools = self._tools(chosen, ready)
                    return self._retrieved(query, chosen, ready, sequence(first, chosen, self.settings.rerank, tools))

    def ask(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        history: Sequence[Message] = (),
        hearing: Hearing | None = None,
    ) -> Answer:
        """The answer to a question, from the hits that `retrieve` gives, with its citations checked (spec 4).

        `settings.answer` and `settings.chat` say who answers and how; `hearing`: who hears of it meanwhile.
        Raises: as `retrieve`; UsageError: no model, no key, a question longer than the window; ModelMissing;
        RemoteError, RagcliError: the model gives no answer at all.
        """
        from ragcli import asking

        return asking.ask(self._question(question, options, history), _Lent(self), hearing or asking.Hearing())

    def draft(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        history: Sequence[Message] = (),
        hearing: Hearing | None = None,
    ) -> Draft:
        """The prompt that `ask` would send, with all that led to it; nothing is sent (spec A11). Raises: as `ask`."""
        from ragcli import asking

        return asking.draft(self._question(question, options, history), _Lent(self), hearing or asking.Hearing())

    @property
    def engine_name(self) -> str:
        """Who answers: "extractive", or the language model's name. Raises: UsageError, ModelMissing, RemoteError."""
        engine = self._engine
        return engine if engine == "extractive" else self._chat.get().name

    def _question(self, text: str, options: RetrievalOptions | None, history: Sequence[Message]) -> Question:
        from ragcli import asking

        engine = self._engine
        if engine != "extractive":
            self._chat.get()  # a mistake in the settings is told before anything is searched
        return asking.Question(
            text=text, engine=engine, settings=self.settings.answer, options=options or self.settings.retrieval,
            history=tuple(history),
        )  # fmt: skip

    @property
    def _engine(self) -> Engine:
        if self.settings.answer.engine is not None:
            return self.settings.answer.engine
        from ragcli.models.chat import engine_of

        return engine_of(self.settings)

    # ------------------------------------------------------------------------------------------------- made ready for

    def _made_ready(self, options: RetrievalOptions) -> _Ready:
        """The mode that the index can serve, the models that the call needs, and what there is to say.

        Raises: IndexMismatch when vectors are asked for that the index has not; UsageError for a reranker or a
        language model that is not set up.
        """
        card = self._store.card()
        embedder = Promise(lambda: self._opened(card))
        mode, warnings = self._mode(options, card)
        _check_vectors(options, card, is_off=self._is_off)
        dense = mode == "vector" or (mode == "hybrid" and self.settings.fusion.weight("dense") > 0)
        if dense:
            warnings += self._of_embedder(mode, embedder)
        elif _needs_query_vector(options):
            embedder.prepare()
        if options.max_context_tokens is not None or options.compression != "none":
            self._tokenizer.prepare()
        is_reranked, said = self._reranks(options)
        if options.compression == "llm":
            self._chat.get()
        return _Ready(mode, card, embedder, dense and not warnings, is_reranked, warnings + said)

    @property
    def _is_off(self) -> bool:
        return self.settings.models.embedder == guard.NONE

    def _mode(self, options: RetrievalOptions, card: EmbedderCard | None) -> tuple[Mode, tuple[str, ...]]:
        """The mode that the index can serve. Raises: IndexMismatch."""
        if options.mode == "keyword" or (card is not None and not self._is_off):
            return options.mode, ()
        reason = "models.embedder is none" if self._is_off else "the index has no vectors"
        if options.mode == "vector":
            raise IndexMismatch(f"{reason}: dense search has nothing to compare", ADD_VECTORS)
        warning = f"{reason}: searched by keywords alone" + ("" if self._is_off else f"; {ADD_VECTORS}")
        asked = {"retrieval.mode"} if self._is_off else {"retrieval.mode", "models.embedder"}
        return "keyword", (warning,) if asked & set(self._explicit or ()) else ()

    def _of_embedder(self, mode: Mode, embedder: Promise[Embedder]) -> tuple[str, ...]:
        """Opens the embedder for the dense arm; what to warn of where keywords alone must serve the call."""
        try:
            embedder.get()
        except (RagcliError, OSError) as error:
            if mode == "vector" or isinstance(error, IndexUnusable):
                raise
            return (f"searched by keywords alone: {_words(error)}",)
        return ()

    def _reranks(self, options: RetrievalOptions) -> tuple[bool, tuple[str, ...]]:
        """Whether the call is reranked, its reranker open; a model that can't be had is a warning (spec P3).

        Raises: UsageError: it is asked for, and none is set up.
        """
        is_set = self.settings.rerank.reranker != NONE
        if options.rerank and not is_set:
            raise UsageError("there is no reranker to rerank with", SET_RERANKER)
        if options.rerank is False or not is_set:
            return False, ()
        try:
            self._reranker.get()
        except UsageError:
            raise
        except RagcliError as error:
            return False, (f"not reranked: {_words(error)}",)
        return True, ()

    def _opened(self, card: EmbedderCard | None) -> Embedder:
        """The embedder of the index. Raises: IndexMismatch, ModelMissing, RemoteError."""
        if card is None or self._is_off:
            raise IndexMismatch("there is no embedder" if card else "the index has no vectors", ADD_VECTORS)
        if self._embedder is not None and self._embedder[0] == card:
            return self._embedder[1]
        from ragcli.models.embedder import open_embedder

        settings = guard.adopted(self.settings, card, self._explicit)
        opened = open_embedder(settings, self._place(), card)
        guard.check(card, opened.card)
        if self._embedder is not None:
            self._embedder[1].close()
        self._embedder = card, opened
        return opened

    def _place(self) -> ModelPlace:
        from ragcli.models.place import model_place

        return self._models() if self._models else model_place(self.settings)

    def _open_reranker(self) -> Reranker:
        from ragcli.rerankers import open_reranker

        return open_reranker(self.settings, self._place(), self._listen)

    def _open_chat(self) -> ChatModel:
        from ragcli.models.chat import open_chat

        named = self.settings.answer.engine
        engine = None if named == "extractive" else named
        return open_chat(self.settings, self._listen, place=self._place, engine=engine)

    def lens(self) -> Lens:
        """How texts are judged by this index: their terms, what those are worth, their vectors (`types.Lens`)."""
        from ragcli.lens import IndexLens

        card = self._store.card()
        return IndexLens(self._store, None if card is None or self._is_off else Promise(lambda: self._opened(card)))

    def _new_window(self) -> Window:
        """How much the model of `ask` can hold, and what counts its tokens; without one, as a prompt is counted."""
        from ragcli import tokens
        from ragcli.prompt import Window

        chat = None if self._engine == "extractive" else self._chat.get()
        size = self.settings.chat.context_window if chat is None else chat.window
        reserve = self.settings.answer.max_tokens
        if chat is not None and chat.count("a") is not None:
            own = cache(lambda text: chat.count(text) or 0)
            return Window(count=own, counted_by=chat.name, size=size, reserve=reserve, is_own=True)
        try:
            count, named = self._tokenizer.get().count, "cl100k_base"
        except (ModelMissing, RemoteError):
            count, named = tokens.estimate, "estimated, rather too high"
        return Window(count=cache(count), counted_by=named, size=size, reserve=reserve)

    def _open_tokenizer(self) -> Tokenizer:
        from ragcli import tokens
        from ragcli.models import pull
        from ragcli.models.catalogue import model

        file = model("cl100k_base").files[0]
        return tokens.load(pull.ensure("cl100k_base", self._place()) / file.name, file.sha256)

    # ------------------------------------------------------------------------------------------------------- the call

    def _tools(self, options: RetrievalOptions, ready: _Ready) -> Tools:
        """What the stages of this call work with. Raises: IndexMismatch: parents are asked for, and none are kept."""
        keeps = options.parent_document is not False and self._store.keeps_parents()
        if options.parent_document and not keeps:
            raise IndexMismatch("the index keeps no parents", ADD_PARENTS)
        return Tools(
            reranker=self._reranker.get() if ready.is_reranked else None,
            parents=keeps,
            chat=self._chat.get() if options.compression == "llm" else None,
        )

    def _retrieved(self, query: str, options: RetrievalOptions, ready: _Ready, stages: Stages) -> Result:
        """The call, on one state of the index."""
        call = Call(self._store, query, self._store.terms(query), options, self.settings, ready.mode)
        vector = Promise(lambda: QueryVector(ready.embedder.get(), query))
        arms = self._arms(call, vector if ready.is_dense else None)
        retrieval = Retrieval(
            call, arms, self._listen,
            lambda numbers: IndexCorpus(
                self._store, numbers, vector=vector, embedder=ready.embedder, tokenizer=self._tokenizer
            ),
        )  # fmt: skip
        ranking = retrieval.run(stages)
        steps = tuple(retrieval.steps)
        ran = {arm.name for arm in retrieval.arms}
        looked = shortage.Looked(call.terms, ran, steps, retrieval.looked_at, DEEPEST)
        return Result(
            query=query, mode=ready.mode, ranking=ranking, trace=Trace(query, steps),
            warnings=(*ready.warnings, *self._of_waiting(ready), *(said for step in steps for said in step.warnings)),
            notes=shortage.notes(self._store, options, looked, ranking),
        )  # fmt: skip

    def _arms(self, call: Call, vector: Promise[QueryVector] | None) -> list[Arm]:
        """The arms that the call runs. One of weight 0 does not, unless there is no other."""
        dense = [DenseArm(self._store, vector.get(), call.options)] if vector else []
        if call.mode == "vector" or (dense and self.settings.fusion.weight("bm25") == 0):
            return list(dense)
        return [KeywordArm(self._store, call.terms, call.options, self.settings.bm25), *dense]

    def _of_waiting(self, ready: _Ready) -> list[str]:
        """That some chunks can't be found by dense search yet."""
        missing = self._store.without_vectors() if ready.is_dense else 0
        if not missing:
            return []
        them = f"{missing:,} of {self._store.size():,} chunks have no vector yet, and dense search can't find them"
        return [f"{them}: ragcli ingest goes on from there"]


class _Lent:
    """What a pipeline lends to a question (`asking.Means`)."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lens: list[Lens] = []
        self._window: list[Window] = []

    def retrieve(self, query: str, options: RetrievalOptions) -> Result:
        return self._pipeline.retrieve(query, options)

    def lens(self) -> Lens:
        if not self._lens:
            self._lens.append(self._pipeline.lens())
        return self._lens[0]

    def chat(self) -> ChatModel:
        return self._pipeline._chat.get()

    def window(self) -> Window:
        if not self._window:
            self._window.append(self._pipeline._new_window())
        return self._window[0]


class _Ready(msgspec.Struct, frozen=True):
    """In which mode a call is served, of the index with this card, and with which models."""

    mode: Mode
    card: EmbedderCard | None
    embedder: Promise[Embedder]
    is_dense: bool  # the dense arm runs
    is_reranked: bool
    warnings: tuple[str, ...] = ()


def _needs_query_vector(options: RetrievalOptions) -> bool:
    """Whether a stage compares with the query's vector."""
    return options.compression == "extractive" or (options.mmr and options.mmr_relevance == "cosine")


def _check_vectors(options: RetrievalOptions, card: EmbedderCard | None, *, is_off: bool) -> None:
    """Raises: IndexMismatch: a stage compares vectors that are not there; it never becomes a plain cut (spec P2)."""
    wanted = {
        "MMR": options.mmr,
        "the redundancy filter": options.redundancy_filter,
        "extracts (retrieval.compression)": options.compression == "extractive",
    }
    stage = next((name for name, is_on in wanted.items() if is_on), "")
    if stage and card is None:
        raise IndexMismatch(f"{stage}: nothing to compare, the index has no vectors", ADD_VECTORS)
    if stage and is_off and _needs_query_vector(options):
        raise IndexMismatch(f"{stage}: no vector of the query, models.embedder is none", "set models.embedder")


def _words(error: RagcliError | OSError) -> str:
    reason, hint = (error.message, error.hint) if isinstance(error, RagcliError) else (str(error), "")
    return reason + (f"; {hint}" if hint else "")
