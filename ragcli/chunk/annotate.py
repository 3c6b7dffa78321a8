"""A document's spans become chunks: with lines, pages, the heading in force, and the context header.

Positions are spec I15, pages I13, headings I12, the header I24. Where to cut is the strategy's business.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ragcli.types import Chunk, Chunker, Document, Heading, Span

SEPARATOR = " > "


def chunk(document: Document, chunker: Chunker, *, context_header: bool) -> list[Chunk]:
    """The document's chunks in order; none when it is blank. Their work is linear in the text.

    With `context_header` each carries the document's title, its heading breadcrumb and the file name, a line each.
    """
    spans = chunker(document)
    if len(spans) == 1 and not (document.headings or document.pages):
        return [_plain(document, spans[0], context_header=context_header)]
    return list(_annotated(document, spans, context_header=context_header))


def _plain(document: Document, span: Span, *, context_header: bool) -> Chunk:
    start, end = span
    text = document.text[start:end]
    first = document.first_line + document.text.count("\n", 0, start)
    return Chunk(
        document_id=document.id,
        index=0,
        start=start,
        end=end,
        text=text,
        start_line=first,
        end_line=first + text.count("\n", 0, -1),
        context=header(document, "") if context_header else "",
    )


def _annotated(document: Document, spans: list[Span], *, context_header: bool) -> Iterator[Chunk]:
    text = document.text
    headings = _Outline(document.headings)
    line, counted = document.first_line, 0
    for index, (start, end) in enumerate(spans):
        line += text.count("\n", counted, start)
        counted = start
        page, page_end = _pages(document.pages, start, end)
        heading, breadcrumb = headings.at(start, end)
        yield Chunk(
            document_id=document.id,
            index=index,
            start=start,
            end=end,
            text=text[start:end],
            start_line=line,
            end_line=line + text.count("\n", start, end - 1),
            page=page,
            page_end=page_end,
            heading=heading.title if heading else "",
            heading_level=heading.level if heading else 0,
            heading_breadcrumb=breadcrumb,
            context=header(document, breadcrumb) if context_header else "",
        )


def _pages(pages: tuple[int, ...], start: int, end: int) -> tuple[int | None, int | None]:
    if not pages:
        return None, None
    first = max(bisect_right(pages, start), 1)
    last = max(bisect_right(pages, end - 1), first)
    return first, last if last > first else None


class _Outline:
    """The headings in force, asked for at ascending places."""

    def __init__(self, headings: tuple[Heading, ...]) -> None:
        self._rest = sorted(headings, key=lambda heading: heading.start, reverse=True)
        self._open: list[Heading] = []

    def at(self, start: int, end: int) -> tuple[Heading | None, str]:
        """The heading in force at `start`, else the first before `end`, and its breadcrumb."""
        while self._rest and self._rest[-1].start <= start:
            self._enter(self._rest.pop())
        if self._open:
            return self._open[-1], SEPARATOR.join(heading.title for heading in self._open)
        if self._rest and self._rest[-1].start < end:
            return self._rest[-1], self._rest[-1].title
        return None, ""

    def _enter(self, heading: Heading) -> None:
        while self._open and self._open[-1].level >= heading.level:
            self._open.pop()
        self._open.append(heading)


def header(document: Document, breadcrumb: str) -> str:
    """Title, breadcrumb, file name: a line each, no part twice."""
    title = _one_line(document.title)
    trail = _one_line(breadcrumb)
    if trail == title or trail.startswith(title + SEPARATOR):
        title = ""
    name = _one_line(document.name)
    return "\n".join(part for part in (title, trail, "" if name in (title, trail) else name) if part)


def headed(context: str, name: str, text: str) -> str:
    """A chunk as a model sees it: its header stands before it (spec I24), but for the file's name at the header's end.

    So a file that is renamed embeds nothing anew (spec I34); the name can be found by its words.
    """
    last = _one_line(name)
    if last and (context == last or context.endswith(f"\n{last}")):
        context = context[: -len(last)].removesuffix("\n")
    return f"{context}\n{text}" if context else text


def passage(chunk: Chunk) -> str:
    """A stored chunk as a model sees it. A file's name is the last part of its path."""
    return headed(chunk.context, chunk.path.replace("\\", "/").rpartition("/")[2], chunk.text)


def _one_line(words: str) -> str:
    return " ".join(words.split())
