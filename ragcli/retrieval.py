"""One retrieval: arms, their fusion, the stages after it, and a Step of everything that ran.

Stages come in two groups. Those that thin candidates out (`where`, redundancy, `per_document`) are quick: when they
leave less than the later ones need, the arms are asked for more, and all of it runs again on those. The later ones run
once, so that no reranker is asked twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from ragcli.arms import Arm, Scores
from ragcli.errors import IndexUnusable, RagcliError, UsageError
from ragcli.options import Mode, RetrievalOptions, Settings
from ragcli.types import ArmScore, Chunk, Event, Hit, Listener, Ranking, Stage, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragcli.corpus import IndexCorpus
    from ragcli.store.sqlite.store import SqliteStore

DEEPEST = 1000  # candidates that are looked at, at most, to fill a page that a stage has thinned out
DEEPER = 4  # times as many, each time
Named = tuple[str, Stage]


class Call(msgspec.Struct, frozen=True):
    """What one retrieval was asked, and in which mode it is served."""

    store: SqliteStore
    query: str
    terms: list[str]
    options: RetrievalOptions
    settings: Settings
    mode: Mode


class Stages(msgspec.Struct, frozen=True):
    """What runs after the arms. `needed`: hits that the late ones want from the thinning ones, to fill a page.

    `merging` turns several hits into one (parents): the page is full when enough are left after it.
    """

    thinning: tuple[Named, ...] = ()
    late: tuple[Named, ...] = ()
    candidates: int = 0  # what the arms are asked for at first
    needed: int = 0
    merging: Stage | None = None


class Retrieval:
    """One call. `steps`, `looked_at` and `arms` tell afterwards what it did."""

    def __init__(
        self,
        call: Call,
        arms: Sequence[Arm],
        listen: Listener,
        corpus: Callable[[Mapping[tuple[str, int], int]], IndexCorpus],
    ) -> None:
        self._call, self._listen = call, listen
        self._store, self._options = call.store, call.options
        self._numbers: dict[tuple[str, int], int] = {}
        self._corpus = corpus(self._numbers)
        self._failed: list[Step] = []  # arms that failed: told however often the others are asked again
        self.arms = list(arms)
        self.looked_at = 0
        self.steps: list[Step] = []

    def run(self, stages: Stages) -> Ranking:
        """The ranking after all stages."""
        wanted, most = stages.candidates, max(DEEPEST, stages.candidates)
        while True:
            self.steps = list(self._failed)
            found = self._candidates(wanted)
            ranking = self._all(stages.thinning, found)
            if len(found.hits) < wanted or wanted >= most or self._is_enough(stages, ranking):
                return self._with_stale(self._all(stages.late, ranking))
            wanted = min(wanted * DEEPER, most)

    def _is_enough(self, stages: Stages, ranking: Ranking) -> bool:
        if len(ranking.hits) < stages.needed:
            return False
        if stages.merging is None:
            return True
        try:
            return len(stages.merging(self._call.query, ranking, self._corpus).hits) >= self._options.top_k
        except RagcliError:  # it is told when the stage itself runs
            return True

    # ------------------------------------------------------------------------------------------------------------ arms

    def _candidates(self, wanted: int) -> Ranking:
        """The best `wanted` chunks as hits."""
        self._listen(Event(stage="retrieving"))
        fusion = self._call.settings.fusion
        depth = max(wanted, self._options.candidates, fusion.depth) if self._call.mode == "hybrid" else wanted
        found = {arm.name: best for arm in list(self.arms) if (best := self._best(arm, depth)) is not None}
        is_fused = len(self.arms) > 1 or (
            self._call.mode == "hybrid" and fusion.method == "rrf" and fusion.weight(self.arms[0].name) > 0
        )
        hits = self._fused(found, wanted) if is_fused else self._alone(found, wanted)
        self.looked_at = len(hits)
        return Ranking(tuple(hits))

    def _best(self, arm: Arm, k: int) -> Scores | None:
        """What the arm finds; None when it fails and others can serve the call (spec R8)."""
        started, before = perf_counter(), len(arm.steps)
        try:
            found = arm.best(k)
        except RagcliError as error:
            if isinstance(error, IndexUnusable) or len(self.arms) == 1:
                raise
            self.arms.remove(arm)
            others = " and ".join(one.name for one in self.arms)
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
        (arm,) = self.arms
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
            for arm in self.arms
        ]
        best = fuse.fuse(ranked, settings, self._store.names(union))[:wanted]
        options = fuse.trace_options([arm.name for arm in self.arms], settings)
        self.steps.append(Step(fuse.STAGE, len(union), len(best), perf_counter() - started, options))
        chunks = self._fetched([one.chunk for one in best])
        terms = {arm.name: arm for arm in self.arms}.get("bm25")
        return [
            Hit(
                chunk=chunks[one.chunk], score=one.score, score_kind=settings.method, arms=one.arms,
                terms=terms.parts(one.chunk) if terms else {}, normalized=one.normalized,
            )
            for one in best
        ]  # fmt: skip

    def _fetched(self, numbers: Sequence[int]) -> Mapping[int, Chunk]:
        chunks = self._store.fetch(numbers)
        self._numbers.clear()
        self._numbers.update({(chunk.document_id, chunk.index): number for number, chunk in chunks.items()})
        return chunks

    # ---------------------------------------------------------------------------------------------------------- stages

    def _all(self, stages: Sequence[Named], ranking: Ranking) -> Ranking:
        for name, stage in stages:
            ranking = self._stage(name, stage, ranking)
        return ranking

    def _stage(self, name: str, stage: Stage, ranking: Ranking) -> Ranking:
        """The ranking after the stage; as it was, with a warning, where the stage fails (spec R8)."""
        self._listen(Event(stage=name))
        started, known = perf_counter(), len(self._corpus.steps)
        try:
            after = stage(self._call.query, ranking, self._corpus)
        except RagcliError as error:
            if isinstance(error, IndexUnusable | UsageError):
                raise
            hint = f"; {error.hint}" if error.hint else ""
            warning = f"{name} failed, and the ranking before it stands: {error.message}{hint}"
            after = msgspec.structs.replace(ranking, warnings=(*ranking.warnings, warning))
        computed = self._corpus.steps[known:]
        seconds = perf_counter() - started - sum(step.seconds for step in computed)
        warnings = after.warnings[len(ranking.warnings) :]
        order = tuple((hit.chunk.document_id, hit.chunk.index) for hit in after.hits)
        self.steps += computed
        self.steps.append(Step(name, len(ranking.hits), len(after.hits), seconds, options_of(stage), warnings, order))
        return after

    def _with_stale(self, ranking: Ranking) -> Ranking:
        """The hits that are shown, marked where their file is no longer what was ingested (spec C12)."""
        replace = msgspec.structs.replace
        keys = [(hit.chunk.document_id, hit.chunk.index) for hit in ranking.hits]
        states = self._store.stale([self._numbers[key] for key in keys])
        hits = (
            replace(hit, stale=states[self._numbers[key]]) if states[self._numbers[key]] else hit
            for key, hit in zip(keys, ranking.hits, strict=True)
        )
        return replace(ranking, hits=tuple(hits))


def options_of(stage: Stage) -> Mapping[str, object]:
    """A stage's fields, for the trace: plain values as they are, what it works with by its name."""
    if not isinstance(stage, msgspec.Struct):
        return {}
    return {name.rstrip("_"): _plain(value) for name, value in msgspec.structs.asdict(stage).items()}


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return getattr(value, "name", None) or str(value)
