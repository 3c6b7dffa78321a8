"""Texts that are hard to cut, every strategy, and the plain-loop checks of spec I21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import regex
from hypothesis import strategies as st

from ragcli.chunk.code import Code
from ragcli.chunk.fixed import Fixed
from ragcli.chunk.markdown import Markdown
from ragcli.chunk.recursive import Recursive
from ragcli.chunk.sentence import Sentence
from ragcli.chunk.token import Token
from ragcli.types import Document, Heading, Span

CHARACTER_STRATEGIES: tuple[Any, ...] = (Recursive, Markdown, Sentence, Code, Fixed)
STRATEGIES: tuple[Any, ...] = (*CHARACTER_STRATEGIES, Token)

PIECES = [
    "a", "Word", "sentence. ", "Ende! ", "J. Smith ", "3.14", " ", "  ", "\t", "\n", "\n\n", "\r\n", "\r\n\r\n",
    "\u2028", "\u3000", "\xa0", "\x1c", "\f", "人工", "智能。", "未来！」", "한국", "\u1112", "\u1161", "\u11ab",
    "\uac00", "e\u0301", "\u0301", "\u0308\u0308", "\u200d", "👩", "👩\u200d👧", "\U0001f1e9",
    "\U0001f1e9\U0001f1ea", "❤\ufe0f", "👍🏽", "\u0915\u094d\u0937", "\u094d", "\u0600", "\u0e33", "\u00ad",
    "\u200b", "# H\n", "## K\n", "def f():\n", "    x\n", "}\n", "@d\n", "class C:\n", "//c\n", "{", "।", "…", '."',
    "?", "\x00",
]  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    """Runs of awkward pieces, some of them long repetitions, and now and then arbitrary characters."""
    pieces = st.sampled_from(PIECES)
    runs = st.builds(lambda piece, times: piece * times, pieces, st.integers(1, 12))
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    return st.lists(st.one_of(pieces, runs, anything), max_size=40).map("".join)


def document(text: str, *, name: str = "", headings: bool = True) -> Document:
    """A document with a heading at every line that starts with #."""
    marks = [(m.start(), len(m[1]), m[2].strip()) for m in regex.finditer(r"(?m)^(#+) ?([^\n]*)", text)]
    found = tuple(Heading(start, level, title) for start, level, title in marks)
    return Document(id="d", text=text, name=name, headings=found if headings else ())


def uncovered(text: str, spans: list[Span]) -> list[int]:
    """The characters that are no white space and in no span."""
    covered = {index for start, end in spans for index in range(start, end)}
    return [index for index, character in enumerate(text) if index not in covered and not character.isspace()]


def clusters(text: str) -> list[Span]:
    """The grapheme clusters of the text, from its beginning on."""
    return [match.span() for match in regex.finditer(r"\X", text)]


def cut_clusters(text: str, spans: list[Span], size: int, length: Callable[[str], int]) -> list[str]:
    """The clusters that a span's end or start lies inside of, though they are not over the size."""
    ends = {place for span in spans for place in span}
    inside = [text[a:b] for a, b in clusters(text) if any(place in ends for place in range(a + 1, b))]
    return [cluster for cluster in inside if length(cluster) <= size]
