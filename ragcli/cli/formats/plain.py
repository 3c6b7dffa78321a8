"""Text for a pipe: what `less`, `grep` and a log want. No colour, no boxes, no wrapping, nothing shortened.

A hit is a line that begins with its rank, then its whole passage, indented. Hits are parted by an empty line.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.cli import inert
from ragcli.cli.formats import Reply, location, parts_of_score, stage_lines
from ragcli.types import Hit

INDENT = "    "


def render(reply: Reply) -> Iterator[str]:
    """Blocks of text, one a hit; explained, the stages and what they dropped stand below."""
    ranking = reply.result.ranking
    for rank, hit in enumerate(ranking.hits, 1):
        yield ("\n" if rank > 1 else "") + _block(rank, hit, reply)
    if reply.explain:
        yield from _stages(reply)
        yield from _dropped(reply)


def _stages(reply: Reply) -> Iterator[str]:
    yield "\nstages:\n" if reply.result.ranking.hits else "stages:\n"
    yield from (f"{INDENT}{line}\n" for line in stage_lines(reply.result.trace))


def _dropped(reply: Reply) -> Iterator[str]:
    dropped = reply.result.ranking.dropped
    if dropped:
        yield f"dropped: {len(dropped)}\n"
    for drop in dropped:
        yield f"{INDENT}{inert.line(location(drop.hit, reply.folder))}  {drop.stage}: {inert.line(drop.reason)}\n"


def _block(rank: int, hit: Hit, reply: Reply) -> str:
    stale = f"[{hit.stale} since ingest]" if hit.stale else ""
    head = (
        inert.line(location(hit, reply.folder)),
        f"{hit.score_kind} {hit.score:.4f}",
        inert.line(hit.chunk.heading),
        stale,
    )
    title = f"{rank}. " + "  ".join(part for part in head if part)
    passage = inert.passage(hit.chunk.text).strip("\n").split("\n")
    explained = (
        [f"{INDENT}= {inert.line(part)}" for part in parts_of_score(hit, reply.result.trace)] if reply.explain else []
    )
    return "\n".join([title, *(f"{INDENT}{line}".rstrip() for line in passage), *explained]) + "\n"
