"""Query in, ranked hits out: opens what the settings name, runs the arms and the stages, records every step.

The pipeline is one loop over a list of stages. Explanations are views of the trace that it leaves, so they can't
contradict the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from ragcli.arms import Arm, DenseArm, KeywordArm, Scores
from ragcli.errors import IndexMismatch, IndexUnusable, RagcliError, UsageError
from ragcli.models import guard
from ragcli.options import Mode, RetrievalOptions, Settings
from ragcli.store.sqlite.store import SqliteStore
from ragcli.types import (
    ArmScore,
    Chunk,
    Drop,
    Embedder,
    EmbedderCard,
    Event,
    Hit,
    Listener,
    Ranking,
    Result,
    Stage,
    Step,
    Trace,
    ignore_event,
)

if TYPE_CHECKING:
    from types import TracebackType

    from ragcli.models.place import ModelPlace
    from ragcli.store.sqlite.inspect import Inspector

NAMED = 10  # unknown terms that a note lists
ADD_VECTORS = "add them: ragcli ingest --re-embed"
NO_WORD = "no document that meets the filters holds any of the query's terms"
DEEPEST = 1000  # candidates that are looked at, at most, to fill a page that a stage has thinned out


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

    @property
    def inspector(self) -> Inspector:
        """A look into the index (spec A11)."""
        from ragcli.store.sqlite.inspect import Inspector

        return Inspector(self._store)

    def retrieve(self, query: str, options: RetrievalOptions | None = None) -> Result:
        """The best hits for `query`, with the record of how they came about.

        An index without vectors serves the mode "hybrid" by keywords alone, and the result's mode says so.
        Raises: UsageError for a blank query, OptionError, ExpressionError; IndexMismatch when vectors are asked for
        that the index has not; IndexCorrupt; in mode "vector" ModelMissing, RemoteError.
        """
        if not query.strip():
            raise UsageError("the query is empty", "give at least one word")
        chosen = options or self.settings.retrieval
        stages = _stages(chosen)
        while True:
            ready = self._made_ready(chosen)  # a model may have to be fetched: not while a snapshot is held
            with self._store.snapshot():
                if self._store.card() == ready.card:
                    return self._retrieved(query, chosen, ready, stages)

    def _made_ready(self, options: RetrievalOptions) -> _Ready:
        """The mode that the index can serve, its embedder open where that needs one, and what there is to say.

        Raises: IndexMismatch when vectors are asked for that the index has not.
        """
        card = self._store.card()
        if options.mode == "keyword":
            return _Ready("keyword", card)
        is_off = self.settings.models.embedder == guard.NONE
        if card is None or is_off:
            reason = "models.embedder is none" if is_off else "the index has no vectors"
            if options.mode == "vector":
                raise IndexMismatch(f"{reason}: dense search has nothing to compare", ADD_VECTORS)
            warning = f"{reason}: searched by keywords alone" + ("" if is_off else f"; {ADD_VECTORS}")
            asked = {"retrieval.mode"} if is_off else {"retrieval.mode", "models.embedder"}
            return _Ready("keyword", card, warnings=(warning,) if asked & set(self._explicit or ()) else ())
        if options.mode == "hybrid" and self.settings.fusion.weight("dense") == 0:
            return _Ready("hybrid", card)
        return self._with_embedder(options.mode, card)

    def _with_embedder(self, mode: Mode, card: EmbedderCard) -> _Ready:
        """Ready for the dense arm; without it when its model can't be had and keywords can serve the call."""
        try:
            return _Ready(mode, card, self._opened(card))
        except (RagcliError, OSError) as error:
            if mode == "vector" or isinstance(error, IndexUnusable):
                raise
            reason, hint = (error.message, error.hint) if isinstance(error, RagcliError) else (str(error), "")
            words = f"searched by keywords alone: {reason}" + (f"; {hint}" if hint else "")
            return _Ready(mode, card, warnings=(words,))

    def _opened(self, card: EmbedderCard) -> Embedder:
        """The embedder of the index. Raises: IndexMismatch, ModelMissing, RemoteError."""
        if self._embedder is not None and self._embedder[0] == card:
            return self._embedder[1]
        from ragcli.models.embedder import open_embedder
        from ragcli.models.place import model_place

        settings = guard.adopted(self.settings, card, self._explicit)
        opened = open_embedder(settings, self._models() if self._models else model_place(settings), card)
        guard.check(card, opened.card)
        if self._embedder is not None:
            self._embedder[1].close()
        self._embedder = card, opened
        return opened

    def _retrieved(
        self, query: str, options: RetrievalOptions, ready: _Ready, stages: Sequence[tuple[str, Stage]]
    ) -> Result:
        """The call, on one state of the index."""
        call = _Call(self._store, query, self._store.terms(query), options, self.settings, ready.mode)
        retrieval = _Retrieval(call, self._arms(call, ready), self._listen)
        ranking = retrieval.run(stages)
        steps = tuple(retrieval.steps)
        warnings = (*ready.warnings, *self._of_waiting(ready), *(said for step in steps for said in step.warnings))
        return Result(
            query=query, mode=ready.mode, ranking=ranking, trace=Trace(query, steps), warnings=warnings,
            notes=retrieval.notes(ranking),
        )  # fmt: skip

    def _arms(self, call: _Call, ready: _Ready) -> list[Arm]:
        """The arms that the call runs. One of weight 0 does not, unless there is no other."""
        dense = [DenseArm(self._store, ready.embedder, call.query, call.options)] if ready.embedder else []
        if call.mode == "vector" or (dense and self.settings.fusion.weight("bm25") == 0):
            return list(dense)
        return [KeywordArm(self._store, call.terms, call.options, self.settings.bm25), *dense]

    def _of_waiting(self, ready: _Ready) -> list[str]:
        """That some chunks can't be found by dense search yet."""
        missing = self._store.without_vectors() if ready.embedder else 0
        if not missing:
            return []
        them = f"{missing:,} of {self._store.size():,} chunks have no vector yet, and dense search can't find them"
        return [f"{them}: ragcli ingest goes on from there"]


def _stages(options: RetrievalOptions) -> list[tuple[str, Stage]]:
    """The stages that these options ask for, in their fixed order (spec 3: post-retrieval)."""
    stages: list[tuple[str, Stage]] = []
    if options.where.strip():
        from ragcli.stages.where import Where

        stages.append(("where", Where(options.where)))
    if options.per_document is not None:
        from ragcli.stages.per_document import PerDocument

        stages.append(("per_document", PerDocument(options.per_document)))
    if stages:
        from ragcli.stages.cut import Cut

        stages.append(("cut", Cut(options.top_k)))
    return stages


class _Ready(msgspec.Struct, frozen=True):
    """In which mode a call is served, by which embedder (None: no dense arm), of the index with this card."""

    mode: Mode
    card: EmbedderCard | None
    embedder: Embedder | None = None
    warnings: tuple[str, ...] = ()


class _Call(msgspec.Struct, frozen=True):
    """What one retrieval was asked, and in which mode it is served."""

    store: SqliteStore
    query: str
    terms: list[str]
    options: RetrievalOptions
    settings: Settings
    mode: Mode


class _Clock:
    """What a stage may ask for (types.Corpus)."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class _Retrieval:
    """One call: the arms, their fusion, the stages after it, and the steps that they leave."""

    def __init__(self, call: _Call, arms: Sequence[Arm], listen: Listener) -> None:
        self._call, self._arms, self._listen = call, list(arms), listen
        self._store, self._query, self._options = call.store, call.query, call.options
        self._numbers: dict[tuple[str, int], int] = {}
        self._looked_at = 0
        self._failed: list[Step] = []  # arms that failed: told however often the others are asked again
        self.steps: list[Step] = []

    def run(self, stages: Sequence[tuple[str, Stage]]) -> Ranking:
        """The ranking after all stages. When they leave less than a page, the arms are asked for more candidates."""
        wanted = self._options.candidates if stages else self._options.top_k
        while True:
            self.steps = list(self._failed)
            found = self._candidates(wanted)
            ranking = found
            for name, stage in stages:
                ranking = self._stage(name, stage, ranking)
            exhausted = len(found.hits) < wanted or wanted >= max(DEEPEST, self._options.candidates)
            if exhausted or len(ranking.hits) >= self._options.top_k:
                return self._with_stale(ranking)
            wanted = min(wanted * 4, max(DEEPEST, self._options.candidates))

    def _candidates(self, wanted: int) -> Ranking:
        """The best `wanted` chunks as hits."""
        self._listen(Event(stage="retrieving"))
        fusion = self._call.settings.fusion
        depth = max(wanted, self._options.candidates, fusion.depth) if self._call.mode == "hybrid" else wanted
        found = {arm.name: best for arm in list(self._arms) if (best := self._best(arm, depth)) is not None}
        is_fused = len(self._arms) > 1 or (
            self._call.mode == "hybrid" and fusion.method == "rrf" and fusion.weight(self._arms[0].name) > 0
        )
        hits = self._fused(found, wanted) if is_fused else self._alone(found, wanted)
        self._looked_at = len(hits)
        return Ranking(tuple(hits))

    def _best(self, arm: Arm, k: int) -> Scores | None:
        """What the arm finds; None when it fails and others can serve the call (spec R8)."""
        started, before = perf_counter(), len(arm.steps)
        try:
            found = arm.best(k)
        except RagcliError as error:
            if isinstance(error, IndexUnusable) or len(self._arms) == 1:
                raise
            self._arms.remove(arm)
            others = " and ".join(one.name for one in self._arms)
            warning = f"the {arm.name} arm failed, {others} alone ranked this: {error.message}"
            self._failed.append(Step(arm.name, arm.size, 0, perf_counter() - started, {}, (warning,)))
            self.steps.append(self._failed[-1])
            return None
        seconds = perf_counter() - started - sum(step.seconds for step in arm.steps[before:])
        self.steps += arm.steps
        options = {"k": k, **arm.options()}
        self.steps.append(Step(arm.name, arm.size, len(found), seconds, options, tuple(arm.warnings)))
        return found

    def _alone(self, found: Mapping[str, Scores], wanted: int) -> list[Hit]:
        """Of one arm: its own ranking, its own scores."""
        (arm,) = self._arms
        best = found[arm.name][:wanted]
        chunks = self._fetched([chunk for chunk, _ in best])
        return [
            Hit(
                chunk=chunks[number], score=score, score_kind=arm.kind,
                arms={arm.name: ArmScore(rank, score, score)}, terms=arm.parts(number),
            )
            for rank, (number, score) in enumerate(best, 1)
        ]  # fmt: skip

    def _fused(self, found: Mapping[str, Scores], wanted: int) -> list[Hit]:
        """Of several: every candidate gets its true score from each of them (spec R6)."""
        from ragcli import fuse

        started, settings = perf_counter(), self._call.settings.fusion
        union = sorted({chunk for best in found.values() for chunk, _ in best})
        ranked = [
            fuse.Arm(
                arm.name,
                {chunk: rank for rank, (chunk, _) in enumerate(found[arm.name], 1)},
                arm.scores(union),
            )
            for arm in self._arms
        ]
        best = fuse.fuse(ranked, settings, self._store.names(union))[:wanted]
        options = fuse.trace_options([arm.name for arm in self._arms], settings)
        self.steps.append(Step(fuse.STAGE, len(union), len(best), perf_counter() - started, options))
        chunks = self._fetched([one.chunk for one in best])
        terms = {arm.name: arm for arm in self._arms}.get("bm25")
        return [
            Hit(
                chunk=chunks[one.chunk], score=one.score, score_kind=settings.method, arms=one.arms,
                terms=terms.parts(one.chunk) if terms else {}, normalized=one.normalized,
            )
            for one in best
        ]  # fmt: skip

    def _fetched(self, numbers: Sequence[int]) -> Mapping[int, Chunk]:
        chunks = self._store.fetch(numbers)
        self._numbers = {(chunk.document_id, chunk.index): number for number, chunk in chunks.items()}
        return chunks

    def _stage(self, name: str, stage: Stage, ranking: Ranking) -> Ranking:
        self._listen(Event(stage=name))
        started = perf_counter()
        after = stage(self._query, ranking, _Clock())
        self.steps.append(Step(name, len(ranking.hits), len(after.hits), perf_counter() - started))
        return after

    def _with_stale(self, ranking: Ranking) -> Ranking:
        """The hits that are shown, marked where their file is no longer what was ingested (spec C12)."""
        from msgspec.structs import replace

        keys = [(hit.chunk.document_id, hit.chunk.index) for hit in ranking.hits]
        states = self._store.stale([self._numbers[key] for key in keys])
        hits = (
            replace(hit, stale=states[self._numbers[key]]) if states[self._numbers[key]] else hit
            for key, hit in zip(keys, ranking.hits, strict=True)
        )
        return Ranking(tuple(hits), ranking.dropped)

    def notes(self, ranking: Ranking) -> tuple[str, ...]:
        """Why there is nothing, or less than a page where a condition cut; and where words had no part in it."""
        if not ranking.hits and not ranking.dropped:
            return tuple(self._why_nothing())
        short = len(ranking.hits) < self._options.top_k
        looked_at = self._looked_at
        if short and ranking.dropped and looked_at >= DEEPEST:
            return (f"only the best {looked_at} candidates were looked at; {_counted(ranking.dropped)}",)
        if short and not ranking.hits:
            return (_counted(ranking.dropped),)
        return tuple(self._without_words())

    def _without_words(self) -> list[str]:
        """That a hybrid ranking is by meaning alone, since no term of the query is in the index."""
        if {arm.name for arm in self._arms} != {"bm25", "dense"}:
            return []
        if any(step.stage == "bm25" and step.given for step in self.steps):
            return []
        return [f"ranked by meaning alone: {self._unknown() or 'no chunk that may be found holds a word of the query'}"]

    def _why_nothing(self) -> list[str]:
        if not self._store.size():
            return ["the index holds no chunks"]
        conditions = self._options.metadata_filter
        if conditions and not self._store.admitted(conditions):
            return self._why_nothing_admitted() or ["no document meets all filters"]
        ran = {arm.name for arm in self._arms}
        reasons = [self._unknown() or NO_WORD] if "bm25" in ran else []
        if "dense" in ran and self._store.vector_count():
            reasons.append(f"no chunk has a cosine of retrieval.min_score = {self._options.min_score:g} or more")
        return reasons

    def _unknown(self) -> str:
        """What there is to say of terms that are not in the index; "" when all are."""
        if not self._call.terms:
            return "the query has no terms: no letters or digits that are not stop words"
        terms = list(dict.fromkeys(self._call.terms))
        known = self._store.known(terms)
        unknown = [term for term in terms if term not in known]
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        return f"not in the index: {', '.join(_short(term) for term in unknown[:NAMED])}{more}" if unknown else ""

    def _why_nothing_admitted(self) -> list[str]:
        from ragcli.filters import explain_mismatch

        kinds = self._store.kinds()
        reasons = (explain_mismatch(condition, kinds) for condition in self._options.metadata_filter)
        return [reason for reason in reasons if reason]


def _counted(dropped: Sequence[Drop]) -> str:
    from collections import Counter

    counts = Counter(drop.stage for drop in dropped)
    return "dropped: " + ", ".join(f"{count} by {stage}" for stage, count in counts.items())


def _short(term: str) -> str:
    return term if len(term) <= 40 else f"{term[:40]}…"
