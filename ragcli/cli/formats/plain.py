"""Text for a pipe: what `less`, `grep` and a log want. No colour, no boxes, no wrapping, nothing shortened.

A hit is a line that begins with its rank, then its whole passage, indented. Hits are parted by an empty line.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.cli import explained, inert
from ragcli.cli.formats import Reply, extract_of, location, parent_of, passage_of
from ragcli.explain import rank_of
from ragcli.types import Hit

INDENT = "    "


def render(reply: Reply) -> Iterator[str]:
    """Blocks of text, one a hit; explained, the stages and what they dropped stand below."""
    ranking = reply.result.ranking
    said = explained.hits(reply.result) if reply.explain else [[]] * len(ranking.hits)
    for position, (hit, lines) in enumerate(zip(ranking.hits, said, strict=True), 1):
        yield ("\n" if position > 1 else "") + _block(rank_of(position, hit), hit, lines, reply)
    if words := explained.reordered(ranking):
        yield f"\n{words}\n"
    if reply.explain:
        yield from _stages(reply)
        yield from _dropped(reply)


def _stages(reply: Reply) -> Iterator[str]:
    yield "\nstages:\n" if reply.result.ranking.hits else "stages:\n"
    yield from (f"{INDENT}{line}\n" for line in explained.stage_lines(reply.result.trace))


def _dropped(reply: Reply) -> Iterator[str]:
    dropped = reply.result.ranking.dropped
    if dropped:
        yield f"dropped: {len(dropped)}\n"
    yield from (f"{INDENT}{explained.drop_line(drop)}\n" for drop in dropped)


def _block(rank: int, hit: Hit, explanation: list[str], reply: Reply) -> str:
    head = (
        inert.line(location(hit, reply.folder)),
        f"{hit.score_kind} {hit.score:.4f}",
        inert.line(hit.chunk.heading),
        *(f"[{said}]" for said in (parent_of(hit), extract_of(hit, full=reply.full)) if said),
        f"[{hit.stale} since ingest]" if hit.stale else "",
    )
    title = f"{rank}. " + "  ".join(part for part in head if part)
    passage = inert.passage(passage_of(hit, full=reply.full)).strip("\n").split("\n")
    return "\n".join([title, *(f"{INDENT}{line}".rstrip() for line in [*passage, *explanation])]) + "\n"
