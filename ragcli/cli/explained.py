"""A result explained in words, for people: where a score comes from, the way a hit went, what each stage did.

The values are those of `ragcli.explain` and of the trace; nothing is computed here but their layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragcli import explain
from ragcli.cli import inert
from ragcli.errors import shortened
from ragcli.explain import Round, Stop
from ragcli.fuse import STAGE
from ragcli.types import ArmScore, Drop, Hit, Ranking, Result, Step, Trace

REORDERED = "reordered: the best at both ends (lost in the middle)"


def hits(result: Result) -> list[list[str]]:
    """Of each hit the lines that explain it: its score by its parts, the way that it went through the stages."""
    ran = explain.rounds(result)
    return [of_hit(hit, result, ran) for hit in result.ranking.hits]


def of_hit(hit: Hit, result: Result, ran: Sequence[Round]) -> list[str]:
    """The lines that explain one hit. `ran`: the rounds of the result."""
    stops = explain.journey(hit, ran)
    sums = [f"= {part}" for part in _parts_of_retrieval(hit, result.trace)]
    lines = [*sums, *(line for stop in stops if (line := _change(stop))), *_way(hit, stops, ran)]
    return [inert.line(line) for line in lines]


def reordered(ranking: Ranking) -> str:
    """That the hits stand in another order than that of relevance; "" where they don't."""
    return REORDERED if explain.is_reordered(ranking) else ""


def stage_lines(trace: Trace) -> list[str]:
    """What ran, in order, a line a step: name, hits in and out, time, options, warnings.

    Of an arm the chunks that it could find are what goes in.
    """
    return [stage_line(step) for step in trace.steps]


def stage_line(step: Step) -> str:
    """One step: `mmr: 15 in, 5 out, 0.4 ms (picks 5, lambda 0.5)`."""
    options = ", ".join(f"{name} {_option(value)}" for name, value in step.options.items() if value is not None)
    counts = f"{step.stage}: {step.taken:,} in, {step.given:,} out, {step.seconds * 1000:.1f} ms"
    return inert.line("; ".join([f"{counts} ({options})" if options else counts, *step.warnings]))


def reference(hit: Hit) -> str:
    """The chunk's name, as notes and reasons write it: `docs/leave.md#3`."""
    return f"{hit.chunk.document_id}#{hit.chunk.index}"


def drop_line(drop: Drop) -> str:
    """A hit that is gone: the chunk's name, the stage and the reason."""
    return inert.line(f"{reference(drop.hit)}  {drop.stage}: {drop.reason}")


# ----------------------------------------------------------------------------------------------------------- a score


def _parts_of_retrieval(hit: Hit, trace: Trace) -> list[str]:
    """Each arm with its rank and score and what these add, the sum of that, the parts of the BM25 score."""
    steps = {step.stage: step for step in trace.steps}
    score, kind = hit.retrieved
    arms = [_arm(name, arm, steps, kind) for name, arm in hit.arms.items()]
    if STAGE in steps:
        arms.append(_sum(hit))
    if not hit.terms:
        return arms
    bm25 = hit.arms.get("bm25")
    of_terms = score if bm25 is None or bm25.score is None else bm25.score
    return [*arms, f"bm25 {of_terms:.4f} = {_added(hit.terms, '')}"]


def _arm(name: str, arm: ArmScore, steps: Mapping[str, Step], kind: str) -> str:
    """`dense rank 3 cosine 0.6123: 0.5 × 0.8312 = 0.4156`; without fusion only what stands before the colon."""
    found = f"{name} {_found(name, arm, steps.get(name))}"
    if STAGE not in steps:
        return found
    weights = steps[STAGE].options.get("weights")
    weight = weights.get(name) if isinstance(weights, Mapping) else None
    scaled = f"{weight:g} × {_figure(arm.part / weight, kind)} = " if weight else ""
    return f"{found}: {scaled}{_figure(arm.part, kind)}"


def _found(name: str, arm: ArmScore, step: Step | None) -> str:
    """Where the arm put the hit, and its own score."""
    if arm.score is None:
        rank = "" if arm.rank is None else f"rank {arm.rank} "
        return rank + ("no vector" if name == "dense" else "no score")
    score = f"{'cosine' if name == 'dense' else 'score'} {arm.score:.4f}"
    if arm.rank is not None:
        return f"rank {arm.rank} {score}"
    if step is None:
        return f"not among its best, {score}"
    return f"{f'not among its best {step.given:,}' if step.given else 'found nothing'}, {score}"


def _sum(hit: Hit) -> str:
    score, kind = hit.retrieved
    parts = _added({name: arm.part for name, arm in hit.arms.items()}, kind)
    is_share = hit.normalized is None or hit.normalized == score
    share = "" if is_share else f" ({hit.normalized:.4f} of the best there can be)"
    return f"{kind} {_figure(score, kind)} = {parts}{share}"


def _added(parts: Mapping[str, float], kind: str) -> str:
    return " + ".join(f"{name} {_figure(part, kind)}" for name, part in parts.items())


def _figure(value: float, kind: str) -> str:
    """Reciprocal ranks differ in their fifth digit."""
    return f"{value:.6f}" if kind == "rrf" else f"{value:.4f}"


# ------------------------------------------------------------------------------------------------------------- a way


def _change(stop: Stop) -> str:
    """What the stage made of the score, or has to say; "" where it only moved the hit."""
    if not stop.parts:
        return f"{stop.stage}: {stop.note}" if stop.note else ""
    note = f" ({stop.note})" if stop.note else ""
    parts = f" = {_added(stop.parts, stop.score_kind)}" if len(stop.parts) > 1 else ""
    return f"= {stop.score_kind} {_figure(stop.score, stop.score_kind)}{parts}{note}"


def _way(hit: Hit, stops: Sequence[Stop], ran: Sequence[Round]) -> list[str]:
    """`docs/leave.md#3: rank 7 → 5 by redundancy → 2 by mmr; place 6 by reorder`; nothing where no stage ran."""
    first = ran[0].before.get(explain.key_of(hit)) if ran else None
    moved = [stop for stop in stops if stop.rank != stop.rank_before]
    moves = "".join(_move(stop, is_placed=stop is moved[-1] and hit.rank not in (None, stop.rank)) for stop in moved)
    return [] if first is None else [f"{reference(hit)}: rank {first}{moves}"]


def _move(stop: Stop, *, is_placed: bool) -> str:
    """A move to another rank; or, of a stage that leaves ranks as they are, to a place in the list."""
    return f"; place {stop.rank} by {stop.stage}" if is_placed else f" → {stop.rank} by {stop.stage}"


# ----------------------------------------------------------------------------------------------------------- a stage


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_option(member)}" for name, member in value.items())
    if isinstance(value, tuple | list):
        return shortened(" ".join(map(str, value)) or "none")
    return f"{value:g}" if isinstance(value, float) else shortened(str(value))
