"""Which sources an answer names, and whether they were sent (spec A9). Pure.

Read as markers: [Source 3], [Sources 1, 2], [Source 1 and 2], [Source 1, page 2], [1], [1, 2], [1-3], (Source 3),
【3】, [^3], in upper case or not. A number alone counts as one only in brackets, with one or two digits, outside of
code, and not behind a word, as in a[1]; so a year in brackets is none. In scripts that put no space between words, a
marker may follow on one. What has a backslash before it is none. Judges no text: `support` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from ragcli.types import Citation

LONGEST_RANGE = 20  # [1-30] is no list of sources: of it only the ends are read
# Thai, Lao, Burmese, Khmer; kana, Han, Hangul
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"


def citations(text: str, sources: int) -> tuple[Citation, ...]:
    """The markers of the text, in their order, one a number; `sources` were sent."""
    return tuple(_citations(text, sources))


def _citations(text: str, sources: int) -> Iterator[Citation]:
    code = [match.span() for match in _code().finditer(text)]
    for match in _marker().finditer(text):
        is_named = "source" in match[0].lower()
        if not is_named and any(start <= match.start() < end for start, end in code):
            continue
        for number in _numbers(next(filter(None, match.groups()), match[0])):
            yield Citation(
                marker=match[0], source=number, start=match.start(), end=match.end(), valid=1 <= number <= sources
            )


def renumbered(text: str, found: Sequence[Citation]) -> tuple[str, Mapping[int, int]]:
    """The text with its valid sources numbered in the order in which they are named, and old number -> new one.

    A marker of several becomes one marker each. One whose numbers are all unknown is left as it is written.
    """
    new: dict[int, int] = {}
    for one in found:
        if one.valid:
            new.setdefault(one.source, len(new) + 1)
    pieces, done = [], 0
    for start, end in dict.fromkeys((one.start, one.end) for one in found):
        numbers = [one for one in found if one.start == start]
        written = (f"[Source {new.get(one.source, one.source)}]" for one in numbers)
        pieces += [text[done:start], *(written if any(one.valid for one in numbers) else [text[start:end]])]
        done = end
    return "".join([*pieces, text[done:]]), new


def without_markers(text: str) -> str:
    """The text alone."""
    return _marker().sub("", text)


def escaped(text: str) -> str:
    """The text with a backslash before what would be read as a marker: what is quoted from a source cites nothing."""
    return _marker().sub(r"\\\g<0>", text)


def leading_markers(text: str) -> int:
    """How many characters of markers the text begins with, on one line."""
    end = 0
    while match := _marker().match(text, end + len(text[end:]) - len(text[end:].lstrip(" \t"))):
        end = match.end()
    return end


def _numbers(marker: str) -> list[int]:
    """The numbers of a marker, each once; a range counts as all of it."""
    found: list[int] = []
    for match in re.finditer(r"(\d+)(?:\s*[-\u2013]\s*(?:source\s*)?(\d+))?", marker, re.IGNORECASE):
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1) if first <= last < first + LONGEST_RANGE else [first, last]
    return list(dict.fromkeys(found))


@cache
def _marker() -> re.Pattern[str]:
    # every repetition is bounded: a text that nearly is a marker over and over takes linear time
    gap = r"\s{0,3}"
    word, joint = rf"(?:sources?{gap}\#?{gap})", rf"{gap}(?:[,;&\u2013\u3001\uff0c-]|and|und|et|y){gap}"
    named = rf"{word}\d{{1,6}}(?:{joint}{word}?\d{{1,6}}){{0,20}}"
    bare = rf"\^?\d{{1,2}}(?:{joint}\^?\d{{1,2}}){{0,20}}"
    more = rf"(?:[:,]{gap}[^\d\s\[\]()][^\[\]()]{{0,60}})?"  # what else a label says: a path, a page
    behind_a_word = rf"(?<=[^\W{_UNSPACED}])|(?<=\))"
    definition = r"(?m:^)\[[^\]\n]*\]:"  # of a link, or of a footnote
    return re.compile(
        rf"(?<!\\)(?:\[{gap}({named}){gap}{more}\]|\({gap}({named}){gap}{more}\)"
        rf"|\u3010{gap}({named}|{bare}){gap}(?:[:\u2020][^\u3010\u3011]{{0,20}})?\u3011"
        rf"|(?!{behind_a_word}|{definition})\[{gap}{bare}{gap}\](?!\((?!{gap}{named})))",
        re.IGNORECASE,
    )


@cache
def _code() -> re.Pattern[str]:
    return re.compile(r"```.*?```|`[^`\n]{1,500}`", re.DOTALL)
