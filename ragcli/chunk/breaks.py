"""The places at which a text is best cut, and best taken up again: paragraph, line, sentence, word.

A `last_*` function gives the last place in `(low, high]`, 0 when there is none. A place is the end of what stands
before the separator, so that white space never counts against a chunk's size. Each looks at its window only. Sentences
follow Unicode's Sentence_Terminal property with the common part of UAX 29: a terminator before a lower-case letter or
after a single capital ends none. No list of abbreviations of any language.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

Last = Callable[[str, int, int], int]

# Run first, then closing quotes; the first kind needs white space behind it, the second (。！？। …) stands without.
SENTENCE_END = (
    r"""(?<!\b\p{Lu})(?<![.!?…])[.!?…]++[\p{Pe}\p{Pf}\p{Pi}"'*_]*+(?=\s(?!\p{Ll}))"""
    r"""|(?![.!?])\p{STerm}++[\p{Pe}\p{Pf}\p{Pi}"'*_]*+"""
)
RUN = 8  # characters before a window in which a terminator with its closing quotes may begin


@cache
def _sentence_end() -> regex.Pattern[str]:
    import regex

    return regex.compile(SENTENCE_END)


@cache
def _spaces() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    import regex

    return regex.compile(r"\s"), regex.compile(r"(?r)\s")


def last_paragraph(text: str, low: int, high: int) -> int:
    """Before a blank line."""
    return max(text.rfind("\n\n", low + 1, high + 2), text.rfind("\r\n\r\n", low + 1, high + 4), 0)


def last_line(text: str, low: int, high: int) -> int:
    """Before a line end."""
    return max(text.rfind("\n", low + 1, high + 1), 0)


def last_sentence(text: str, low: int, high: int) -> int:
    """After a sentence's terminator and closing quotes."""
    last = 0
    for match in _sentence_end().finditer(text, max(low - RUN, 0), high + 2):
        if low < match.end() <= high:
            last = int(match.end())
    return last


def first_sentence(text: str, low: int, high: int) -> int:
    """The first place in `[low, high)` at which a sentence starts, white space before it not counted; -1 if none."""
    for match in _sentence_end().finditer(text, max(low - RUN, 0), high + 1):
        if low - 1 <= match.end() < high:
            return max(int(match.end()), low)
    return -1


def last_space(text: str, low: int, high: int) -> int:
    """Before white space of any kind."""
    space = text.rfind(" ", low + 1, high + 1)
    if space >= 0:
        return space
    found = _spaces()[1].search(text, low + 1, high + 1)
    return found.start() if found else 0


def first_word(text: str, low: int, high: int) -> int:
    """The first place in `[low, high)` at which a word starts, white space before it not counted; -1 if none."""
    if text[low - 1 : low].isspace():
        return low
    found = _spaces()[0].search(text, low, high)
    return found.start() if found else -1


SEPARATORS: tuple[Last, ...] = (last_paragraph, last_line, last_sentence, last_space)


def strongest(text: str, low: int, high: int, separators: tuple[Last, ...] = SEPARATORS) -> int:
    """The last place of the strongest separator that has one in `(low, high]`; 0 when none has."""
    for last in separators:
        place = last(text, low, high)
        if place:
            return place
    return 0


def sentences(text: str) -> list[tuple[int, int]]:
    """The spans of the sentences, without white space around them; headings, items and rows of tables end one too."""
    ends = [match.end() for match in _sentence_end().finditer(text)]
    ends += [match.start() for match in _new_line_of_thought().finditer(text)]
    found, start = [], 0
    for end in [*sorted(set(ends)), len(text)]:
        piece = text[start:end]
        if stripped := piece.strip():
            first = start + len(piece) - len(piece.lstrip())
            found.append((first, first + len(stripped)))
        start = end
    return found


@cache
def _new_line_of_thought() -> regex.Pattern[str]:
    """A line end before a blank line, an item, a heading or a row, or after a heading."""
    import regex

    before = r"\r?\n(?=[ \t]*(?:\r?\n|[-*+•] |#{1,6} |\||\d{1,3}[.)] ))"
    return regex.compile(before + r"|(?<=^#{1,6} [^\n]{0,200})\n", regex.MULTILINE)
