"""A numbered Markdown list: for a note, an issue, or a model's prompt. Passages are quoted blocks (CommonMark)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.cli import inert
from ragcli.cli.formats import Reply, location, parts_of_score
from ragcli.types import Hit


def render(reply: Reply) -> Iterator[bytes]:
    """The list; without hits a sentence that says so."""
    hits = reply.result.ranking.hits
    if not hits:
        yield b"No hits.\n"
    for rank, hit in enumerate(hits, 1):
        yield ("\n" if rank > 1 else "").encode() + _item(rank, hit, reply).encode()


def _item(rank: int, hit: Hit, reply: Reply) -> str:
    number = f"{rank}. "
    indent = " " * len(number)
    heading = f" › {_plain(hit.chunk.heading)}" if hit.chunk.heading else ""
    stale = f" **[{hit.stale}]**" if hit.stale else ""
    title = (
        f"{number}{_code(inert.line(location(hit, reply.folder)))}{heading} ({hit.score_kind} {hit.score:.4f}){stale}"
    )
    quoted = [f"{indent}> {line}".rstrip() for line in inert.passage(hit.chunk.text).split("\n")]
    parts = [f"{indent}- {_plain(part)}" for part in parts_of_score(hit, reply.result.trace)] if reply.explain else []
    return "\n".join([title, "", *quoted, *(["", *parts] if parts else [])]) + "\n"


def _code(text: str) -> str:
    """A code span whose fence is longer than any run of backticks in `text`."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(text: str) -> str:
    """`text` with the characters that Markdown and HTML act upon escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", inert.line(text))
