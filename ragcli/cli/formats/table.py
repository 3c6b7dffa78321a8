"""The table on a terminal (owner of rich's table): rank, score and its kind, source, heading, the passage around the
densest place of the query's terms, with these marked. Rows stand in the final order, and the rank is that of relevance:
where the two differ, a line below says so.

Narrower than `NARROW` columns the same is stacked in blocks, narrower than `PLAIN` it is plain text. Document
text is only ever drawn as inert, literal text: never as markup, an emoji code, or an escape sequence (spec C13).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragcli.cli import explained, inert
from ragcli.cli.formats import Reply, extract_of, location, parent_of, passage_of, plain
from ragcli.cli.wording import counted
from ragcli.explain import rank_of
from ragcli.types import Hit, Span

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

NARROW = 72  # columns below which a source beside a passage leaves neither room
PLAIN = 30  # columns below which rich, too, writes over the edge
SOURCE = "source"  # the header of its column, which is never narrower
OTHER_COLUMNS = 18  # rank, score and the gaps
PASSAGE_LINES = 5  # of a passage that is shown in part
MARK = "bold yellow"
ELLIPSIS = "…"
MOST_DROPS = 20  # shown below the table; JSON has them all


def render(reply: Reply) -> Iterator[str]:
    """The drawn table. Without hits nothing: the summary says so."""
    if reply.width < PLAIN:
        yield from plain.render(reply)
        return
    if reply.result.ranking.hits:
        yield _drawn(_stacked(reply) if reply.width < NARROW else _table(reply), reply.width)
    if below := _below(reply):
        yield _drawn(_text(below), reply.width)


def _text(lines: list[str]) -> RenderableType:
    from rich.text import Text

    return Text("\n".join(lines), overflow="fold")


def _drawn(content: RenderableType, width: int) -> str:
    console = _console(width)
    console.print(content)
    output = console.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().split("\n"))


def _console(width: int) -> Console:
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        force_terminal=True,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
    )


def _table(reply: Reply) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    hits = reply.result.ranking.hits
    sources = [_source(hit, reply.folder) for hit in hits]
    longest = max(len(line) for source in sources for line in (SOURCE, *source.plain.split("\n")))
    source_width = min(longest, reply.width // 3)
    table = Table(box=SIMPLE_HEAD, show_lines=False, pad_edge=False, expand=True, leading=1, header_style="dim")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column(SOURCE, width=source_width, overflow="fold")
    table.add_column("passage", ratio=1, overflow="fold")
    room = _room(reply.width - source_width - OTHER_COLUMNS)
    for position, (hit, source, lines) in enumerate(zip(hits, sources, _explanations(reply), strict=True), 1):
        table.add_row(str(rank_of(position, hit)), _score(hit), source, _passage(reply, hit, lines, room))
    return table


def _explanations(reply: Reply) -> list[list[str]]:
    return explained.hits(reply.result) if reply.explain else [[]] * len(reply.result.ranking.hits)


def _room(columns: int) -> int:
    return max(columns * PASSAGE_LINES, 40)


def _stacked(reply: Reply) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    blocks: list[RenderableType] = []
    for position, (hit, lines) in enumerate(zip(reply.result.ranking.hits, _explanations(reply), strict=True), 1):
        score = _score(hit).plain.replace("\n", " ")
        head = Text.assemble(f"{rank_of(position, hit)}. ", _source(hit, reply.folder), "  ", (score, "dim"))
        head.overflow = "fold"
        body = _passage(reply, hit, lines, _room(reply.width - 2))
        blocks += [head, Padding(body, (0, 0, 1, 2))]
    return Group(*blocks)


def _score(hit: Hit) -> Text:
    from rich.text import Text

    return Text.assemble(
        f"{hit.score:.2f}" if abs(hit.score) >= 1 else f"{hit.score:.4f}", ("\n" + hit.score_kind, "dim")
    )


def _source(hit: Hit, folder: str) -> Text:
    from rich.text import Text

    source = Text(inert.line(location(hit, folder)), style="cyan")
    if hit.chunk.heading:
        source.append("\n" + inert.line(hit.chunk.heading), style="default italic")
    if hit.parent is not None:
        source.append("\n" + parent_of(hit), style="default dim")
    if hit.stale:
        source.append(f"\n[{hit.stale} since ingest]", style="bold red")
    return source


def _passage(reply: Reply, hit: Hit, explanation: list[str], room: int) -> Text:
    from rich.text import Text

    text = passage_of(hit, full=reply.full)
    marks: tuple[Span, ...] = reply.highlighter.matches(text) if reply.highlighter else ()
    start, end = 0, len(text)
    if not reply.full and reply.highlighter:
        part = reply.highlighter.snippet(text, room)
        start, end, marks = part.start, part.end, part.matches
    shown = Text(ELLIPSIS if start else "", style="dim", overflow="fold")
    shown = Text.assemble(shown, _marked(text, start, end, marks, keep_lines=reply.full))
    if end < len(text):
        shown.append(ELLIPSIS, style="dim")
    if hidden := len(text) - (end - start):
        shown.append(f" ({counted(hidden, 'more character')})", style="dim")
    if extract := extract_of(hit, full=reply.full):
        shown.append(f" [{extract}]", style="dim")
    for line in explanation:
        shown.append(f"\n{line}", style="dim")
    return shown


def _marked(text: str, start: int, end: int, marks: tuple[Span, ...], *, keep_lines: bool) -> Text:
    from rich.text import Text

    shown, at = Text(overflow="fold"), start
    for first, last in marks:
        shown.append(_flowing(text[at:first], keep_lines=keep_lines))
        shown.append(_flowing(text[first:last], keep_lines=keep_lines), style=MARK)
        at = last
    shown.append(_flowing(text[at:end], keep_lines=keep_lines))
    return shown


def _flowing(text: str, *, keep_lines: bool) -> str:
    """Inert, and unless lines are kept with every run of white space as one space."""
    if keep_lines:
        return inert.passage(text)
    joined = " ".join(text.split())
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and joined else ""
    return inert.line(before + joined + after)


def _below(reply: Reply) -> list[str]:
    """That hits were reordered; explained, what ran, and what it dropped and why."""
    lines = [words] if (words := explained.reordered(reply.result.ranking)) else []
    if not reply.explain:
        return lines
    return [*lines, "stages:", *(f"  {line}" for line in explained.stage_lines(reply.result.trace)), *_dropped(reply)]


def _dropped(reply: Reply) -> list[str]:
    dropped = reply.result.ranking.dropped
    if not dropped:
        return []
    lines = [f"dropped: {len(dropped):,}"]
    lines += [f"  {explained.drop_line(drop)}" for drop in dropped[:MOST_DROPS]]
    if len(dropped) > MOST_DROPS:
        lines.append(f"  and {len(dropped) - MOST_DROPS:,} more: --format json lists all")
    return lines
