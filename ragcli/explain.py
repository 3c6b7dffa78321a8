"""What became of each hit, stage by stage: a view of what stages left (marks, drops, orders). Pure.

A `Round` is one stage's order before and after. The order before the first of them is that of retrieval: by score, then
by name. Computes no score, and draws nothing: table, JSON and `inspect --trace` show the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ragcli.options import ARMS
from ragcli.types import Drop, Hit, Mark, Ranking, Result, Step

Key = tuple[str, int]  # (document id, chunk index): a hit's identity, whatever stages make of it


class Round(msgspec.Struct, frozen=True):
    """A stage that ran, and the place of each hit (from 1) before and after it; `after` lacks those that it dropped."""

    stage: str
    before: Mapping[Key, int]
    after: Mapping[Key, int]


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage made of a hit that it kept: its place and its score, before and after.

    `parts` add up to `score`; {} where the stage left the score as it was. `note`: what led to it, in words.
    """

    stage: str
    rank_before: int
    rank: int
    score_before: float
    kind_before: str
    score: float
    score_kind: str
    parts: Mapping[str, float] = {}
    note: str = ""


class Standing(msgspec.Struct, frozen=True):
    """A hit behind a stage: as it is in the end, with the place before that stage and the score behind it."""

    hit: Hit
    rank_before: int
    score: float
    score_kind: str


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """Where a chunk stands in a result, or where it went.

    Shown: `hit`, its `rank` by relevance and its `position` in the list. Dropped: `hit`, and the `drop` with stage and
    reason. Never among the candidates: neither, and `reason` says what the arms gave. `stops`: the way it went.
    """

    hit: Hit | None = None
    rank: int | None = None
    position: int | None = None
    drop: Drop | None = None
    reason: str = ""
    stops: tuple[Stop, ...] = ()


def key_of(hit: Hit) -> Key:
    """The hit's identity."""
    return hit.chunk.document_id, hit.chunk.index


def rank_of(position: int, hit: Hit) -> int:
    """The hit's rank by relevance, from 1: its position in the list, unless a stage reordered that."""
    return hit.rank or position


def is_reordered(ranking: Ranking) -> bool:
    """Whether the hits stand in an order other than that of relevance."""
    return any(rank_of(position, hit) != position for position, hit in enumerate(ranking.hits, 1))


def rounds(result: Result) -> tuple[Round, ...]:
    """The stages that ran on hits, in their order; () where there were none."""
    dropping = {drop.stage for drop in result.ranking.dropped}
    steps = [step for step in result.trace.steps if step.order or step.stage in dropping]
    return tuple(_rounds(steps, _retrieved(result.ranking))) if steps else ()


def journey(hit: Hit, ran: Sequence[Round]) -> tuple[Stop, ...]:
    """The stages that touched or moved the hit, in their order. `ran`: the rounds of its result."""
    return tuple(_stops(hit, ran))


def score_parts(hit: Hit) -> Mapping[str, float]:
    """What adds up to the hit's score: the parts that the last stage to change it gave, else those of the arms."""
    changed = next((mark.parts for mark in reversed(hit.marks) if mark.parts), None)
    return changed or {name: arm.part for name, arm in hit.arms.items()}


def fate(document_id: str, chunk_index: int, result: Result) -> Fate:
    """Where the chunk stands in the result, at which stage it went and why, or that no arm put it forward."""
    key, ran = (document_id, chunk_index), rounds(result)
    for position, hit in enumerate(result.ranking.hits, 1):
        if key_of(hit) == key:
            return Fate(hit=hit, rank=rank_of(position, hit), position=position, stops=journey(hit, ran))
    for drop in result.ranking.dropped:
        if key_of(drop.hit) == key:
            return Fate(hit=drop.hit, drop=drop, reason=drop.reason, stops=journey(drop.hit, ran))
    return Fate(reason=_never(result))


def place_of(drop: Drop, ran: Sequence[Round]) -> int | None:
    """Where the hit stood when it was dropped, from 1; None where no stage of the trace dropped it."""
    found = (one.before.get(key_of(drop.hit)) for one in ran if one.stage == drop.stage)
    return next(found, None)


def standings(ran: Sequence[Round], result: Result) -> list[list[Standing]]:
    """Of each round the hits that came out of it, in their order."""
    every = {key_of(hit): hit for hit in _every(result.ranking)}
    names = [one.stage for one in ran]
    return [
        [_standing(every[key], one.before[key], names[:number]) for key in one.after if key in every]
        for number, one in enumerate(ran, 1)
    ]


def _standing(hit: Hit, rank_before: int, stages: Sequence[str]) -> Standing:
    marks = [mark for mark in hit.marks if mark.stage in stages]
    score, kind = (marks[-1].score, marks[-1].kind) if marks else hit.retrieved
    return Standing(hit, rank_before, score, kind)


def _every(ranking: Ranking) -> list[Hit]:
    """All hits that there were."""
    return [*ranking.hits, *(drop.hit for drop in ranking.dropped)]


def _retrieved(ranking: Ranking) -> list[Key]:
    """All hits in the order in which retrieval gave them (ties: document id, then chunk index)."""
    return [key_of(hit) for hit in sorted(_every(ranking), key=lambda hit: (-hit.retrieved[0], key_of(hit)))]


def _rounds(steps: Sequence[Step], order: Sequence[Key]) -> Iterator[Round]:
    before = _places(order)
    for step in steps:
        after = _places(step.order)
        yield Round(step.stage, before, after)
        before = after


def _places(order: Sequence[Key]) -> dict[Key, int]:
    return {key: place for place, key in enumerate(order, 1)}


def _stops(hit: Hit, ran: Sequence[Round]) -> Iterator[Stop]:
    key, (score, kind) = key_of(hit), hit.retrieved
    for one in ran:
        if key not in one.before or key not in one.after:
            return
        rank_before, rank = one.before[key], one.after[key]
        marks = [mark for mark in hit.marks if mark.stage == one.stage]
        if marks or rank != rank_before:
            stop = _stop(one.stage, rank_before, rank, marks or [_untouched(one.stage, score, kind)])
            score, kind = stop.score, stop.score_kind
            yield stop


def _untouched(stage: str, score: float, kind: str) -> Mark:
    return Mark(stage=stage, before=score, kind_before=kind, score=score, kind=kind)


def _stop(stage: str, rank_before: int, rank: int, marks: Sequence[Mark]) -> Stop:
    first, last = marks[0], marks[-1]
    parts = next((mark.parts for mark in reversed(marks) if mark.parts), {})
    notes = "; ".join(mark.note for mark in marks if mark.note)
    return Stop(
        stage=stage, rank_before=rank_before, rank=rank, score_before=first.before, kind_before=first.kind_before,
        score=last.score, score_kind=last.kind, parts=parts, note=notes,
    )  # fmt: skip


def _never(result: Result) -> str:
    arms = (step for step in result.trace.steps if step.stage in ARMS)
    gave = ", ".join(f"{step.stage} gave {step.given:,} of {step.taken:,} chunks" for step in arms)
    return "not among the candidates" + (f": {gave}" if gave else "")
