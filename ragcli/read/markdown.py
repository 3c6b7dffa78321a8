"""Markdown: front matter to metadata, headings by CommonMark 0.31 (ATX and setext, not inside fenced code).

The text below the front matter is kept as it is, so a chunk's lines are the file's lines (`Document.first_line`). MDX
is read as Markdown: its imports and components stay. Renders nothing and follows no links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragcli.read.decode import decode
from ragcli.read.formats import name_of
from ragcli.read.front_matter import split_front_matter
from ragcli.read.metadata import times
from ragcli.types import Document, Heading, Metadata, ReadRequest

# A line that may be a heading, its underline, or the start of fenced code.
_CANDIDATE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|(?P<atx>\#{1,6})(?:[ \t]+(?P<words>[^\r\n]*?))?[ \t]*\r?$"
    r"|(?P<under>=+|-+)[ \t]*\r?$)",
    re.MULTILINE,
)
MOST_LINES = 8  # of a setext heading: an underlined paragraph that is longer is prose
LONGEST = 400  # characters of a heading whose mark-up is taken out; a longer one is none that a person wrote
_TRAILING_HASHES = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_NOT_A_PARAGRAPH = re.compile(r" {0,3}(?:[>|]|[-+*][ \t]|\d{1,9}[.)][ \t]|#{1,6}(?:[ \t]|$)|<)| {4}|\t")
_MARKUP = (
    (re.compile(r"<[^<>\n]{1,200}>"), ""),
    (re.compile(r"[ \t]*\{#[^}\n]*\}[ \t]*$"), ""),  # an explicit anchor
    (re.compile(r"!?\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])"), r"\1"),
    (re.compile(r"(`+)([^`\n]+)\1"), r"\2"),
    (re.compile(r"(\*{1,3}|(?<!\w)_{1,3}|~~)(?=\S)([^\n]+?)(?<=\S)\1(?!\w)"), r"\2"),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


def read(request: ReadRequest) -> Iterator[Document]:
    """One document. Broken front matter stays in the text and is a warning."""
    decoded = decode(request.data)
    front = split_front_matter(decoded.text)
    text = decoded.text[front.body :] if front.body else decoded.text
    headings = headings_of(text)
    created, updated = times(front.metadata)
    relative = request.source.relative
    yield Document(
        id=relative,
        text=text,
        title=_title(front.metadata, headings),
        name=name_of(relative),
        format="markdown",
        metadata=front.metadata,
        headings=headings,
        first_line=1 + decoded.text.count("\n", 0, front.body),
        created_at=created,
        updated_at=updated,
        warnings=(*decoded.warnings, *([front.warning] if front.warning else [])),
    )


def _title(metadata: Metadata, headings: tuple[Heading, ...]) -> str:
    title = metadata.get("title") or metadata.get("Title")
    if title is not None and not isinstance(title, tuple) and str(title).strip():
        return str(title).strip()
    return next((heading.title for heading in headings if heading.level == 1), "")


def headings_of(text: str) -> tuple[Heading, ...]:
    """The headings in order; `start` is the offset at which the heading's first line starts."""
    if "#" not in text and "==" not in text and "--" not in text and "\n=" not in text and "\n-" not in text:
        return ()
    found: list[Heading] = []
    position, floor = 0, 0  # an underline reaches up to `floor` and no further: what is above belongs to others
    while match := _CANDIDATE.search(text, position):
        position = match.end() + 1
        if match["fence"]:
            position = floor = _end_of_fence(text, match)
        elif match["atx"]:
            words = _TRAILING_HASHES.sub("", match["words"] or "")
            found.append(Heading(match.start(), len(match["atx"]), plain(words)))
            floor = position
        else:
            if (start := _paragraph_above(text, match.start(), floor)) is not None:
                words = " ".join(text[start : match.start()].split())
                found.append(Heading(start, 1 if match["under"][0] == "=" else 2, plain(words)))
            floor = position
        if position > len(text):
            break
    return tuple(heading for heading in found if heading.title)


def _end_of_fence(text: str, opening: re.Match[str]) -> int:
    """The offset behind the line that closes fenced code; the end of the text where nothing does."""
    mark = opening["fence"]
    closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*\r?$", re.MULTILINE)
    start = text.find("\n", opening.end())
    end = closing.search(text, start + 1) if start >= 0 else None
    return end.end() + 1 if end else len(text) + 1


def _paragraph_above(text: str, end: int, floor: int) -> int | None:
    """Where the paragraph right above `end` starts; None where there is none that a setext line can underline."""
    start = None
    for _ in range(MOST_LINES + 1):
        if end <= floor:
            return start
        above = max(text.rfind("\n", 0, end - 1) + 1, floor)
        line = text[above:end]
        if not line.strip():
            return start
        if _NOT_A_PARAGRAPH.match(line):
            return None
        start = end = above
    return None


def plain(words: str) -> str:
    """The words of a heading without inline mark-up: `[**a** `b`](c)` gives `a b`."""
    if not words.isalnum() and len(words) < LONGEST:
        for pattern, replacement in _MARKUP:
            words = pattern.sub(replacement, words)
    return words.strip()
