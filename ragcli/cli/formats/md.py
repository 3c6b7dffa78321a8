"""A numbered Markdown list: for a note, an issue, or a model's prompt. Passages are quoted blocks (CommonMark)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.cli import explained, inert
from ragcli.cli.formats import Reply, extract_of, location, parent_of, passage_of
from ragcli.types import Hit


def render(reply: Reply) -> Iterator[bytes]:
    """The list; without hits a sentence that says so.

    Its numbers count positions (Markdown numbers lists itself); reordered, each hit says its rank.
    """
    ranking = reply.result.ranking
    if not ranking.hits:
        yield b"No hits.\n"
    said = explained.hits(reply.result) if reply.explain else [[]] * len(ranking.hits)
    for position, (hit, lines) in enumerate(zip(ranking.hits, said, strict=True), 1):
        yield ("\n" if position > 1 else "").encode() + _item(position, hit, lines, reply).encode()
    if words := explained.reordered(ranking):
        yield f"\n{words[0].upper()}{words[1:]}.\n".encode()


def _item(position: int, hit: Hit, explanation: list[str], reply: Reply) -> str:
    number = f"{position}. "
    indent = " " * len(number)
    place = _code(inert.line(location(hit, reply.folder)))
    heading = f" › {_plain(hit.chunk.heading)}" if hit.chunk.heading else ""
    stale = f" **[{hit.stale}]**" if hit.stale else ""
    title = f"{number}{place}{heading} ({_facts(hit, reply)}){stale}"
    passage = inert.passage(passage_of(hit, full=reply.full))
    quoted = [f"{indent}> {line}".rstrip() for line in passage.split("\n")]
    parts = [f"{indent}- {_plain(line.removeprefix('= '))}" for line in explanation]
    return "\n".join([title, "", *quoted, *(["", *parts] if parts else [])]) + "\n"


def _facts(hit: Hit, reply: Reply) -> str:
    rank = f"rank {hit.rank}" if explained.reordered(reply.result.ranking) else ""
    score = f"{hit.score_kind} {hit.score:.4f}"
    return ", ".join(fact for fact in (rank, score, parent_of(hit), extract_of(hit, full=reply.full)) if fact)


def _code(text: str) -> str:
    """A code span whose fence is longer than any run of backticks in `text`."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(text: str) -> str:
    """`text` with the characters that Markdown and HTML act upon escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", inert.line(text))
