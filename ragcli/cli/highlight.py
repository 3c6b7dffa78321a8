"""Where the query's terms stand in a passage, and the part of it that holds the most of them.

Works on what the index's own analyzer says, so that what is marked is what was matched: stems, folded accents, pairs
of CJK characters. Draws nothing and escapes nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import msgspec

from ragcli.text import Analyzer
from ragcli.types import Span

WHOLE, PAIRED, MARK = "whole", "paired", "mark"  # how a character is analyzed


class Snippet(msgspec.Struct, frozen=True):
    """A part of a text: its span, and the matched spans inside it (in characters of the whole text)."""

    start: int
    end: int
    matches: tuple[Span, ...]


class Highlighter:
    """Finds the terms of one query in texts. Remembers words it has seen."""

    def __init__(self, query: str, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._terms = frozenset(analyzer.terms(query))
        self._known: dict[str, tuple[Span, ...]] = {}
        self._kinds: dict[str, str] = {}

    def matches(self, text: str) -> tuple[Span, ...]:
        """Spans of `text` that are terms of the query, ascending, disjoint."""
        if not self._terms:
            return ()
        found = (
            (start + first, start + last)
            for start, run, paired in self._runs(text)
            for first, last in self._matches_in(run, paired=paired)
        )
        return tuple(found)

    def snippet(self, text: str, width: int) -> Snippet:
        """The part of `text`, at most about `width` characters, that holds the most different terms of the query.

        Of equally good parts the first. Cut at spaces where there are any.
        """
        matches = self.matches(text)
        if len(text) <= width:
            return Snippet(0, len(text), matches)
        first, last = _densest(matches, [text[s:e].casefold() for s, e in matches], width)
        start, end = _frame(text, first, last, width)
        return Snippet(start, end, tuple(span for span in matches if start <= span[0] and span[1] <= end))

    def _runs(self, text: str) -> Iterator[tuple[int, str, bool]]:
        """Runs of characters that are analyzed together: where each starts, and whether it is cut into pairs."""
        start, kind = 0, ""
        for at, character in enumerate(text):
            now = self._kind(character, kind)
            if now != kind:
                if kind:
                    yield start, text[start:at], kind == PAIRED
                start, kind = at, now
        if kind:
            yield start, text[start:], kind == PAIRED

    def _kind(self, character: str, before: str) -> str:
        if character.isascii():
            return WHOLE if character.isalnum() else ""
        if character not in self._kinds:
            self._kinds[character] = self._kind_of(character)
        kind = self._kinds[character]
        return before if kind == MARK else kind

    def _kind_of(self, character: str) -> str:
        if unicodedata.category(character)[0] == "M":
            return MARK
        if not character.isalnum():
            return ""
        return PAIRED if len(self._analyzer.terms(character * 3)) == 2 else WHOLE  # three of CJK are two pairs

    def _matches_in(self, run: str, *, paired: bool) -> tuple[Span, ...]:
        if run not in self._known:
            whole = ((0, len(run)),) if self._terms.intersection(self._analyzer.terms(run)) else ()
            self._known[run] = tuple(self._find_pairs(run)) if whole and paired else whole
        return self._known[run]

    def _find_pairs(self, run: str) -> Iterator[Span]:
        """Of a CJK run every pair that the query has too; pairs that touch or overlap are one span."""
        bases = [at for at, character in enumerate(run) if character.isalnum()] + [len(run)]
        start, end = 0, 0
        for first, last in zip(bases, bases[2:] or bases[1:], strict=False):
            if not self._terms.intersection(self._analyzer.terms(run[first:last])):
                continue
            if first > end:
                if end:
                    yield start, end
                start = first
            end = last
        if end:
            yield start, end


def _densest(matches: tuple[Span, ...], words: list[str], width: int) -> Span:
    """The span, at most `width` long, from match to match with the most different words; (0, 0) without matches."""
    best, most = (0, 0), (0, 0)
    for first, (start, _) in enumerate(matches):
        last = first
        while last + 1 < len(matches) and matches[last + 1][1] - start <= width:
            last += 1
        richness = (len(set(words[first : last + 1])), last - first + 1)
        if richness > most:
            best, most = (start, matches[last][1]), richness
    return best


def _frame(text: str, first: int, last: int, width: int) -> Span:
    """The span `first` to `last` with context on both sides, up to `width` in all, cut at spaces."""
    spare = max(width - (last - first), 0)
    start = max(0, min(first - spare // 2, len(text) - width))
    end = min(len(text), max(start + width, last))
    return _forward_to_space(text, start, first), _back_to_space(text, end, last)


def _forward_to_space(text: str, start: int, limit: int) -> int:
    if start == 0 or text[start - 1].isspace():
        return start
    gap = next((at for at in range(start, limit) if text[at].isspace()), None)
    return start if gap is None else gap + 1


def _back_to_space(text: str, end: int, limit: int) -> int:
    if end == len(text) or text[end].isspace():
        return end
    gap = next((at for at in range(end - 1, limit, -1) if text[at].isspace()), None)
    return end if gap is None else gap
