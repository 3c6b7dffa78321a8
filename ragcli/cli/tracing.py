"""What `inspect QUERY --trace` shows: every step with what went in and out, what it dropped and why, and the order.

As JSON it is what `query --format json --explain` writes, with `dropped` and `order` in each of the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragcli.cli import explained, inert
from ragcli.cli.formats import Reply, location
from ragcli.cli.formats.json import result_object
from ragcli.explain import Round, Standing, place_of, rank_of, rounds, standings
from ragcli.types import Drop, Result

INDENT = "    "


def trace_object(result: Result) -> dict[str, Any]:
    """The trace as plain values."""
    found = result_object(Reply(result=result, explain=True))
    ran = rounds(result)
    orders = {one.stage: order for one, order in zip(ran, standings(ran, result), strict=True)}
    stages = [
        {**stage, "dropped": _drops(result, stage["name"], ran), "order": _order(orders.get(stage["name"], []))}
        for stage in found["stages"]
    ]
    return {**found, "stages": stages}


def _drops(result: Result, stage: str, ran: Sequence[Round]) -> list[dict[str, Any]]:
    return [
        {
            "document_id": drop.hit.chunk.document_id,
            "chunk_index": drop.hit.chunk.index,
            "rank": place_of(drop, ran),
            "reason": drop.reason,
        }
        for drop in result.ranking.dropped
        if drop.stage == stage
    ]


def _order(order: Sequence[Standing]) -> list[dict[str, Any]]:
    return [
        {
            "document_id": one.hit.chunk.document_id,
            "chunk_index": one.hit.chunk.index,
            "rank_before": one.rank_before,
            "rank": rank,
            "score": one.score,
            "score_kind": one.score_kind,
        }
        for rank, one in enumerate(order, 1)
    ]


def text(result: Result, folder: str = "") -> str:
    """The trace in words. Paths below `folder` are shown relative to it."""
    head = f"query  {inert.line(result.query)}\nmode   {result.mode}\n\n"
    return head + "".join(_steps(result)) + "".join(_hits(result, folder))


def _steps(result: Result) -> Iterator[str]:
    ran = rounds(result)
    orders = {one.stage: order for one, order in zip(ran, standings(ran, result), strict=True)}
    for step in result.trace.steps:
        yield f"{explained.stage_line(step)}\n"
        for drop in result.ranking.dropped:
            if drop.stage == step.stage:
                yield f"{INDENT}{_dropped(drop, ran)}\n"
        before = [one.rank_before for one in orders.get(step.stage, [])]
        if before != sorted(before):
            yield f"{INDENT}order: {' '.join(map(str, before))} (ranks before it)\n"


def _dropped(drop: Drop, ran: Sequence[Round]) -> str:
    rank = place_of(drop, ran)
    place = "" if rank is None else f"rank {rank}  "
    return inert.line(f"dropped: {place}{explained.reference(drop.hit)}  {drop.reason}")


def _hits(result: Result, folder: str) -> Iterator[str]:
    if not result.ranking.hits:
        yield "\nno hits\n"
    said = explained.hits(result)
    for position, (hit, lines) in enumerate(zip(result.ranking.hits, said, strict=True), 1):
        score = f"{hit.score_kind} {hit.score:.4f}"
        head = f"{rank_of(position, hit)}. {location(hit, folder)}  {score}  {hit.chunk.heading}".rstrip()
        yield f"\n{inert.line(head)}\n" + "".join(f"{INDENT}{line}\n" for line in lines)
    if words := explained.reordered(result.ranking):
        yield f"\n{words}\n"
