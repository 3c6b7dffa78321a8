"""What a chunk's size is counted in: characters, or cl100k_base tokens.

A token count is that of the chunk's own text, encoded by itself: what a model is given, not a share of the document's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from ragcli.errors import UsageError
from ragcli.options import Unit
from ragcli.tokens import Tokenizer

TokenizerSource = Callable[[], Tokenizer]


class Measure(Protocol):
    """How long a span is, and how far so many units reach. Positions are characters of the text."""

    def of(self, text: str, start: int, end: int) -> int:
        """The length of `text[start:end]` in units."""
        ...

    def fits(self, text: str, size: int) -> bool:
        """Whether the text is surely no longer than `size` units, told without work; False when in doubt."""
        ...

    def reach(self, text: str, start: int, stop: int, size: int) -> int:
        """The furthest end, at most `stop`, of a span of about `size` units from `start`."""
        ...

    def back(self, text: str, start: int, end: int, size: int) -> int:
        """The earliest start, at least `start`, of a span of about `size` units that ends at `end`."""
        ...


class Characters(msgspec.Struct, frozen=True):
    """Unicode code points."""

    def of(self, text: str, start: int, end: int) -> int:  # noqa: ARG002 - the Protocol's signature
        return end - start

    def fits(self, text: str, size: int) -> bool:
        return len(text) <= size

    def reach(self, text: str, start: int, stop: int, size: int) -> int:  # noqa: ARG002
        return min(start + size, stop)

    def back(self, text: str, start: int, end: int, size: int) -> int:  # noqa: ARG002
        return max(start, end - size)


class Tokens(msgspec.Struct, frozen=True):
    """cl100k_base tokens. Encodes as much of the text as one chunk needs, never the rest."""

    tokenizer: Tokenizer

    def of(self, text: str, start: int, end: int) -> int:
        return self.tokenizer.count(text[start:end])

    def fits(self, text: str, size: int) -> bool:
        return len(text) <= size and text.isascii()  # a token is at least one byte

    def reach(self, text: str, start: int, stop: int, size: int) -> int:
        width = size
        while True:
            end = min(start + width, stop)
            tokens = self.tokenizer.encode(text[start:end])
            if len(tokens) > size or end == stop:
                break
            width = _wider(width, len(tokens), size)
        return end if len(tokens) <= size else start + self.tokenizer.characters(tokens[:size])

    def back(self, text: str, start: int, end: int, size: int) -> int:
        width = size
        while True:
            begin = max(start, end - width)
            tokens = self.tokenizer.encode(text[begin:end])
            if len(tokens) > size or begin == start:
                break
            width = _wider(width, len(tokens), size)
        return begin if len(tokens) <= size else end - self.tokenizer.characters(tokens[-size:])


def _wider(width: int, tokens: int, size: int) -> int:
    """Characters to try next when `width` gave too few tokens: as many as the same text would need, and some more."""
    likely = width * (size + 1) // max(tokens, 1)
    return min(likely + likely // 8, width * 8) + 16


CHARACTERS = Characters()


def measure(unit: Unit, tokenizer: TokenizerSource | None) -> Measure:
    """The measure of this unit; the tokenizer is asked for only when tokens are counted.

    Raises:
        UsageError: tokens are to be counted and there is no tokenizer.
    """
    if unit == "characters":
        return CHARACTERS
    if tokenizer is None:
        raise UsageError("chunking by tokens needs a tokenizer", "pass tokenizer=, a function that gives one")
    return Tokens(tokenizer())
