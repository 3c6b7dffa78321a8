"""Query in, ranked hits out: opens what the settings name, runs the arms and the stages, records every step.

The pipeline is one loop over a list of stages. Explanations are views of the trace that it leaves, so they can't
contradict the result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from ragcli.errors import UsageError
from ragcli.options import RetrievalOptions, Settings
from ragcli.store.sqlite.store import SqliteStore
from ragcli.types import ArmScore, Drop, Event, Hit, Listener, Ranking, Result, Stage, Step, Trace, ignore_event

if TYPE_CHECKING:
    from types import TracebackType

    from ragcli.store.sqlite.inspect import Inspector

NAMED = 10  # unknown terms that a note lists
DEEPEST = 1000  # candidates that are looked at, at most, to fill a page that a stage has thinned out


class Pipeline:
    """An open index with its settings. A context manager; not shared between threads.

    ::

        with Pipeline.open(Path(".ragcli/index.db")) as pipeline:
            for hit in pipeline.retrieve("torque sensor").ranking.hits:
                print(hit.score, hit.chunk.path, hit.chunk.start_line)
    """

    def __init__(self, store: SqliteStore, settings: Settings, listen: Listener = ignore_event) -> None:
        self._store = store
        self._listen = listen
        self.settings = settings

    @classmethod
    def open(
        cls,
        index: Path,
        settings: Settings | None = None,
        *,
        explicit: Collection[str] | None = None,
        listen: Listener = ignore_event,
    ) -> Pipeline:
        """The index at `index`. `explicit`: the dotted settings that the user chose, which it must have been built
        with (None: those that differ from the built-in defaults); for the others it keeps its own.

        Raises: IndexMissing, IndexCorrupt, IndexMismatch, IndexLocked.
        """
        chosen = settings or Settings()
        store = SqliteStore.open(index, chosen, explicit)
        return cls(store, store.settings, listen)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the index back."""
        self._store.close()

    @property
    def inspector(self) -> Inspector:
        """A look into the index (spec A11)."""
        from ragcli.store.sqlite.inspect import Inspector

        return Inspector(self._store)

    def retrieve(self, query: str, options: RetrievalOptions | None = None) -> Result:
        """The best hits for `query`, with the record of how they came about.

        Raises: UsageError for a blank query, OptionError, ExpressionError; IndexCorrupt.
        """
        if not query.strip():
            raise UsageError("the query is empty", "give at least one word")
        chosen = options or self.settings.retrieval
        stages = _stages(chosen)
        with self._store.snapshot():
            retrieval = _Retrieval(self._store, query, chosen, self.settings, self._listen)
            ranking = retrieval.run(stages)
            notes = retrieval.notes(ranking)
        return Result(
            query=query, mode=chosen.mode, ranking=ranking, trace=Trace(query, tuple(retrieval.steps)), notes=notes
        )


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


class _Clock:
    """What a stage may ask for (types.Corpus)."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class _Retrieval:
    """One call: the arm, the stages after it, and the steps that they leave."""

    def __init__(
        self, store: SqliteStore, query: str, options: RetrievalOptions, settings: Settings, listen: Listener
    ) -> None:
        self._store, self._query, self._options, self._settings = store, query, options, settings
        self._listen = listen
        self._terms = store.terms(query)
        self.steps: list[Step] = []

    def run(self, stages: Sequence[tuple[str, Stage]]) -> Ranking:
        """The ranking after all stages. When they leave less than a page, the arm is asked for more candidates."""
        wanted = self._options.candidates if stages else self._options.top_k
        while True:
            self.steps = []
            found = self._keyword(wanted)
            ranking = found
            for name, stage in stages:
                ranking = self._stage(name, stage, ranking)
            exhausted = len(found.hits) < wanted or wanted >= max(DEEPEST, self._options.candidates)
            if exhausted or len(ranking.hits) >= self._options.top_k:
                return self._with_stale(ranking)
            wanted = min(wanted * 4, max(DEEPEST, self._options.candidates))

    def _keyword(self, k: int) -> Ranking:
        """The BM25 arm: terms, scores, passages."""
        self._listen(Event(stage="retrieving"))
        started = perf_counter()
        scored = self._store.keyword(self._terms, k, self._settings.bm25, self._options.metadata_filter)
        chunks = self._store.fetch([hit.chunk for hit in scored])
        names = list(dict.fromkeys(self._terms))
        hits = tuple(
            Hit(
                chunk=chunks[hit.chunk],
                score=hit.score,
                score_kind="bm25",
                arms={"bm25": ArmScore(rank, hit.score)},
                terms=hit.parts,
            )
            for rank, hit in enumerate(scored, 1)
        )
        self._numbers = {
            (hit.chunk.document_id, hit.chunk.index): one.chunk for hit, one in zip(hits, scored, strict=True)
        }
        options = {"k": k, "k1": self._settings.bm25.k1, "b": self._settings.bm25.b, "terms": tuple(names)}
        self.steps.append(Step("bm25", self._store.size(), len(hits), perf_counter() - started, options))
        return Ranking(hits)

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
        """Why there is nothing, or less than a page where a condition cut."""
        if not ranking.hits and not ranking.dropped:
            return tuple(self._why_nothing())
        short = len(ranking.hits) < self._options.top_k
        looked_at = self.steps[0].given
        if short and ranking.dropped and looked_at >= DEEPEST:
            return (f"only the best {looked_at} candidates were looked at; {_counted(ranking.dropped)}",)
        if short and not ranking.hits:
            return (_counted(ranking.dropped),)
        return ()

    def _why_nothing(self) -> list[str]:
        if not self._store.size():
            return ["the index holds no chunks"]
        if not self._terms:
            return ["the query has no terms: no letters or digits that are not stop words"]
        conditions = self._options.metadata_filter
        if conditions and not self._store.admitted(conditions):
            return self._why_nothing_admitted() or ["no document meets all filters"]
        terms = list(dict.fromkeys(self._terms))
        known = self._store.known(terms)
        unknown = [term for term in terms if term not in known]
        if unknown:
            more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
            return [f"not in the index: {', '.join(_short(term) for term in unknown[:NAMED])}{more}"]
        return ["no document that meets the filters holds any of the query's terms"]

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
