"""Why an answer fails, and what would have kept the text that answers (spec A10).

There are three ways: nothing was retrieved; what was retrieved is the wrong text; the right text was there and was not
used. Which one it was is told by a text that the answer should rest on (`expect`): where it stands in the index, which
rank each arm gave it, at which stage it went. A change that would have kept it is not reasoned about but tried, by a
retrieval of its own; nothing is sent anywhere but the question itself, once, where the text was there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from ragcli.answer.citations import without_markers
from ragcli.corpus import Promise
from ragcli.errors import RagcliError
from ragcli.explain import Fate, Key, Round, fate, key_of, rounds
from ragcli.options import Mode, RetrievalOptions
from ragcli.pipeline import Pipeline
from ragcli.prompt import STAGE as WINDOW
from ragcli.text import matching
from ragcli.types import Answer, ArmScore, Hit, Message, Place, Result

Cause = Literal["answered", "nothing-retrieved", "wrong-text", "not-used", "unknown"]
DEEP = 1000  # hits among which the text is looked for when it is not among the sources
MOST_CHANGES = 3  # that worked, and are told
ARMS_OF: Mapping[Mode, frozenset[str]] = {
    "hybrid": frozenset({"bm25", "dense"}), "keyword": frozenset({"bm25"}), "vector": frozenset({"dense"}),
}  # fmt: skip
ALL = "all"  # the kind of a proposal that takes back everything
Proposal = tuple[str, str, RetrievalOptions]  # its kind, of which one is enough; as it is written; what it means


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that holds the expected text, and how it fared.

    `arms`: what each arm thinks of it, also those that the mode leaves out, looked at `DEEP` hits deep without filters;
    {} where none finds it. `ranks`: (stage, rank
    before, rank after; None: dropped there). `source`: its number in the prompt; None: it is not in it. `reason`: why.
    """

    document_id: str
    chunk_index: int
    arms: Mapping[str, ArmScore]
    ranks: tuple[tuple[str, int, int | None], ...]
    source: int | None
    reason: str = ""


class Change(msgspec.Struct, frozen=True):
    """A change that was tried and puts the text into the prompt: options as they are written, the source's number."""

    options: str
    source: int


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a question. `because`: the cause in words; `advice`: what to do that was not tried."""

    question: str
    search: str
    cause: Cause
    because: str
    expect: str
    places: tuple[Place, ...]
    expected: tuple[Expected, ...]
    changes: tuple[Change, ...]
    advice: tuple[str, ...]
    result: Result
    answer: Answer | None
    warnings: tuple[str, ...]


def why(
    pipeline: Pipeline, question: str, expect: str = "", options: RetrievalOptions | None = None,
    *, history: Sequence[Message] = (),
) -> Why:  # fmt: skip
    """The cause, with its evidence. Raises: as `Pipeline.ask`; UsageError: `expect` is blank."""
    return _Asked(pipeline, question, expect, options or pipeline.settings.retrieval, history).why()


class _Asked:
    def __init__(
        self, pipeline: Pipeline, question: str, expect: str, options: RetrievalOptions, history: Sequence[Message]
    ) -> None:
        self._pipeline, self._question, self._options = pipeline, question, options
        self._history, self._expect = tuple(history), expect
        self._draft = pipeline.draft(question, options, history=history)
        self._result = self._draft.result
        self._sources = self._draft.prompt.sources
        self._places = pipeline.inspector.places(expect) if expect else ()
        self._deep = Promise(lambda: self._looked(self._bare))
        self._admitted = Promise(lambda: self._looked(replace(self._bare, metadata_filter=options.metadata_filter)))
        self._others = Promise(self._looked_otherwise)

    def why(self) -> Why:
        if not self._result.ranking.hits:
            return self._found("nothing-retrieved", self._why_nothing(), changes=tuple(self._changes()))
        if not self._expect:
            return self._without_expectation()
        number = _holding(self._sources, self._expect)
        if number is None:
            return self._found("wrong-text", self._why_wrong(), changes=tuple(self._changes()))
        return self._of_answer(number)

    # ---------------------------------------------------------------------------------------------------- the verdicts

    def _found(
        self, cause: Cause, because: str, *, changes: tuple[Change, ...] = (), advice: tuple[str, ...] | None = None,
        answer: Answer | None = None,
    ) -> Why:  # fmt: skip
        warnings = self._draft.warnings if answer is None else answer.warnings
        return Why(
            question=self._question, search=self._draft.search, cause=cause, because=because, expect=self._expect,
            places=self._places, expected=tuple(self._expected()), changes=changes,
            advice=tuple(self._advice(changes)) if advice is None else advice, result=self._result,
            answer=answer, warnings=warnings,
        )  # fmt: skip

    def _why_nothing(self) -> str:
        notes = "; ".join(self._result.notes)
        return f"nothing was retrieved: {notes}" if notes else "nothing was retrieved"

    def _why_wrong(self) -> str:
        hits = len(self._sources)
        if not self._places:
            return f"the wrong text was retrieved: none of the {hits} sources holds the expected one, no document does"
        if not any(place.chunks for place in self._places):
            return "the wrong text was retrieved: the expected one is cut apart by the ends of chunks"
        best = next(self._expected(), None)
        reason = f": {best.document_id}#{best.chunk_index} {best.reason}" if best and best.reason else ""
        return f"the wrong text was retrieved: none of the {hits} sources holds the expected one{reason}"

    def _without_expectation(self) -> Why:
        """What can be said where nobody says what should have been found."""
        if not self._draft.confidence.is_enough:
            return self._found("nothing-retrieved", f"nothing relevant was retrieved: {self._draft.confidence.words}")
        answer = self._asked()
        advice = ("name a text that the answer should rest on: --expect TEXT",)
        if answer.problem:
            return self._found("not-used", f"the answer broke off: {answer.problem}", advice=advice, answer=answer)
        stated = [one for one in answer.statements if one.supported]
        cited = any(one.valid for one in answer.citations)
        if cited and len(stated) == len(answer.statements) and stated:
            return self._found("answered", "each statement is supported by the sources", advice=advice, answer=answer)
        because = f"{len(self._sources)} sources were sent; whether they are the right text only you can say"
        return self._found("unknown", because, advice=advice, answer=answer)

    def _of_answer(self, number: int) -> Why:
        """The text is in the prompt: does the answer use it?"""
        answer = self._asked()
        if answer.outcome == "no-answer":
            because = f"the right text was retrieved (source {number}) and not used, nobody was asked: {answer.text}"
            is_unsure = not self._draft.confidence.is_enough
            advice = ("ask even so: --always",) if is_unsure else tuple(_on_answer(answer, number))
            return self._found("not-used", because, advice=advice, answer=answer)
        if matching(self._expect).search(" ".join(without_markers(answer.text).split())):
            because = f"the answer holds the expected text, from source {number}"
            return self._found("answered", because, advice=(), answer=answer)
        because = f"the right text was there (source {number} of {len(answer.sources)}), and the answer does not use it"
        return self._found("not-used", because, advice=tuple(_on_answer(answer, number)), answer=answer)

    def _asked(self) -> Answer:
        return self._pipeline.ask(self._question, self._options, history=self._history)

    # ---------------------------------------------------------------------------------------------------- the evidence

    def _keys(self) -> list[Key]:
        """The chunks that hold the text; of a text that none holds whole, those that hold a part."""
        whole = [(place.document_id, index) for place in self._places for index in place.chunks]
        return whole or [(place.document_id, index) for place in self._places for index in place.parts]

    def _expected(self) -> Iterator[Expected]:
        """They, the best ranked ones first."""
        keys = self._keys()
        if not keys:
            return
        ran, deep = rounds(self._result), self._deep.get()
        for key in sorted(keys, key=lambda key: (deep[key][0] if key in deep else DEEP + 1, key)):
            arms = {**self._others.get().get(key, {}), **(deep[key][1].arms if key in deep else {})}
            yield Expected(
                document_id=key[0], chunk_index=key[1], arms=arms, ranks=tuple(_ranks(key, ran)),
                source=self._number(key), reason=self._reason(key, arms),
            )  # fmt: skip

    def _number(self, key: Key) -> int | None:
        """Its number in the prompt: its own, or that of its parent."""
        for number, hit in enumerate(self._sources, 1):
            children = hit.parent.children if hit.parent else (hit.chunk.index,)
            if key[0] == hit.chunk.document_id and key[1] in children:
                return number
        return None

    @property
    def _bare(self) -> RetrievalOptions:
        """The same query with nothing that thins out: what the arms think of everything that is near."""
        return RetrievalOptions(
            top_k=DEEP, mode=self._options.mode, min_score=-1.0, rerank=False, parent_document=False,
            exact=self._options.exact,
        )  # fmt: skip

    def _looked(self, options: RetrievalOptions) -> Mapping[Key, tuple[int, Hit]]:
        """The hits with their ranks."""
        found = self._pipeline.retrieve(self._draft.search, options).ranking.hits
        return {key_of(hit): (rank, hit) for rank, hit in enumerate(found, 1)}

    def _looked_otherwise(self) -> Mapping[Key, Mapping[str, ArmScore]]:
        """What all arms think where the mode asks one alone; {} where the others can't be asked."""
        if self._options.mode == "hybrid":
            return {}
        try:
            found = self._looked(replace(self._bare, mode="hybrid"))
        except RagcliError:
            return {}
        return {key: hit.arms for key, (_, hit) in found.items()}

    def _reason(self, key: Key, arms: Mapping[str, ArmScore]) -> str:
        """Why it is not in the prompt; "" where it is."""
        window = next((one for one in self._draft.prompt.dropped if key_of(one.hit) == key), None)
        if window is not None:
            return f"was dropped by {WINDOW}: {window.reason}"
        number = self._number(key)
        if number is not None:
            return self._reason_of_source(number)
        return self._reason_of_dropped(key, fate(*key, self._result), arms)

    def _reason_of_source(self, number: int) -> str:
        hit = self._sources[number - 1]
        is_whole = matching(self._expect).search(hit.chunk.text)
        is_short = is_whole and not _holding((hit,), self._expect)
        return f"was shortened by compress: what is left (source {number}) does not hold it" if is_short else ""

    def _reason_of_dropped(self, key: Key, found: Fate, arms: Mapping[str, ArmScore]) -> str:
        if found.drop is not None:
            return f"was dropped by {found.drop.stage}: {found.drop.reason}"
        deep = self._deep.get().get(key)
        if deep is None:
            by = f"found by {self._options.mode} search" if arms else f"among the first {DEEP:,} of any arm"
            return f"is not {by}"
        if self._options.metadata_filter and key not in self._admitted.get():
            return f"does not meet the filter: by itself it has rank {deep[0]}"
        floor = self._below_floor(deep[1])
        return f"is not among the candidates{floor}: by itself it has rank {deep[0]}"

    def _below_floor(self, hit: Hit) -> str:
        dense = hit.arms.get("dense")
        if dense is None or dense.score is None or dense.score >= self._options.min_score:
            return ""
        return f" (cosine {dense.score:.4f}, retrieval.min_score = {self._options.min_score:g})"

    # ----------------------------------------------------------------------------------------------------- the changes

    def _changes(self) -> Iterator[Change]:
        """Changes that put the text into the prompt, each tried."""
        best = next(self._expected(), None)
        if best is None:
            return
        rank, _ = self._deep.get().get((best.document_id, best.chunk_index), (None, None))
        worked: list[str] = []
        for kind, written, options in _proposals(self._options, best, rank):
            if len(worked) == MOST_CHANGES or kind in worked or (kind == ALL and worked):
                continue
            draft = self._pipeline.draft(self._draft.search, options)
            if (number := _holding(draft.prompt.sources, self._expect)) is not None:
                worked.append(kind)
                yield Change(written, number)

    def _advice(self, changes: Sequence[Change]) -> Iterator[str]:
        if not self._expect:
            yield "name a text that the answer should rest on: --expect TEXT"
        elif not self._places:
            yield "was the file ingested? ragcli inspect --documents; inspect --stats says what was skipped or failed"
        elif not any(place.chunks for place in self._places):
            yield "parents or larger, overlapping chunks keep it whole: ingest --parents, --chunk-size, --chunk-overlap"
        elif not changes and any(key_of(drop.hit) in self._keys() for drop in self._draft.prompt.dropped):
            yield "the model's window has no room for it: a lower --max-tokens, a model or a setting with a larger one"
        elif not changes:
            yield "no change of an option alone brings it up: ask in words that the text uses"


def _holding(sources: Sequence[Hit], expect: str) -> int | None:
    """The number of the first source that holds the text."""
    wanted = matching(expect)
    texts = (hit.chunk.text if hit.compressed_text is None else hit.compressed_text for hit in sources)
    return next((number for number, text in enumerate(texts, 1) if wanted.search(text)), None)


def _ranks(key: tuple[str, int], ran: Sequence[Round]) -> Iterator[tuple[str, int, int | None]]:
    """The rank before and after each stage that saw the chunk."""
    for one in ran:
        if key in one.before:
            yield one.stage, one.before[key], one.after.get(key)


def _on_answer(answer: Answer, number: int) -> Iterator[str]:
    """What may help where the text was there."""
    if answer.finish == "length":
        yield "the answer ended at a limit: --max-tokens N"
    if 1 < number < len(answer.sources):
        yield "the text stands in the middle, where models read least: --lost-in-the-middle, or fewer sources (--top-k)"
    elif len(answer.sources) > 1:
        yield f"fewer sources leave less to be led astray by: --top-k {number}"
    if answer.engine == "extractive":
        yield "extracts are the sentences nearest to the question; a language model reads all of them: --model NAME"
    else:
        yield f"another model than {answer.engine}: --model NAME"


def _proposals(options: RetrievalOptions, expected: Expected, rank: int | None) -> Iterator[Proposal]:
    """What may bring the chunk up: without what may have dropped it, deeper, in another mode, all of it."""
    yield from _of_filters(options)
    yield from _of_stages(options, expected)
    if rank is not None and rank > options.candidates:
        yield "candidates", f"--candidates {rank}", replace(options, candidate_count=rank)
    for k in dict.fromkeys((max(rank or 0, options.top_k + 1), 2 * (rank or 0))):
        if rank is not None and k > options.top_k:
            yield "deeper", f"--top-k {k}", replace(options, top_k=k)
    found = {name for name, arm in expected.arms.items() if arm.rank is not None}
    own = ARMS_OF[options.mode] if options.mode != "hybrid" else frozenset()
    for mode, arms in ARMS_OF.items():
        if mode != options.mode and (arms - own) & found:
            yield "mode", f"--mode {mode}", replace(options, mode=mode)
    bare = replace(
        options, min_score=-1.0, where="", metadata_filter=(), per_document=None, redundancy_filter=False, mmr=False,
        rerank=False, parent_document=False, max_context_tokens=None, compression="none",
        top_k=max(rank or 0, options.top_k),
    )  # fmt: skip
    yield ALL, f"no filters, no floors, no stages, --top-k {bare.top_k}", bare


def _of_filters(options: RetrievalOptions) -> Iterator[Proposal]:
    if options.metadata_filter:
        yield "filter", "no --filter", replace(options, metadata_filter=())
    if options.where:
        yield "where", "no --where", replace(options, where="")


def _of_stages(options: RetrievalOptions, expected: Expected) -> Iterator[Proposal]:
    dense = expected.arms.get("dense")
    if dense and dense.score is not None and dense.score < options.min_score:
        floor = max(floor_of(dense.score), -1.0)
        yield "min_score", f"--min-score {floor:.2f}", replace(options, min_score=floor)
    if options.redundancy_filter:
        yield "redundancy", "--no-redundancy-filter", replace(options, redundancy_filter=False)
    if options.per_document is not None:
        yield "per_document", "no --per-document", replace(options, per_document=None)
    if options.mmr:
        yield "mmr", "--no-mmr", replace(options, mmr=False)
    if options.rerank is not False:
        yield "rerank", "--no-rerank", replace(options, rerank=False)
    if options.parent_document is False:
        yield "parents", "--parents", replace(options, parent_document=None)
    else:
        yield "parents", "--no-parents", replace(options, parent_document=False)
    if options.max_context_tokens is not None:
        yield "budget", "no --max-context-tokens", replace(options, max_context_tokens=None)
    if options.compression != "none":
        yield "compress", "--compress none", replace(options, compression="none")


def floor_of(score: float) -> float:
    """The largest number of two decimals that the score is not below."""
    return math.floor(score * 100) / 100
