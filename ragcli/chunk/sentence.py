"""Whole sentences, as many as fit. A sentence that doesn't fit by itself is cut like the default strategy cuts."""

from __future__ import annotations

import msgspec

from ragcli.chunk import recursive
from ragcli.chunk.breaks import first_sentence, last_paragraph, last_sentence
from ragcli.chunk.measure import TokenizerSource, measure
from ragcli.chunk.pack import Packer
from ragcli.options import Unit
from ragcli.types import Document, Span


def cut(text: str, done: int, limit: int) -> int:
    """The last end of a sentence or paragraph, however early it is."""
    place = max(last_sentence(text, done, limit), last_paragraph(text, done, limit))
    return place or recursive.cut(text, done, limit)


def resume(text: str, low: int, end: int) -> int:
    """The first sentence's start in the overlap; no overlap when its last sentence is longer than the overlap."""
    place = first_sentence(text, low, end)
    if place >= 0:
        return place
    whole = last_sentence(text, end - 1, end) or text[end : end + 4].lstrip(" \r").startswith("\n")
    return end if whole else recursive.resume(text, low, end)


class Sentence(msgspec.Struct, frozen=True):
    """Sentences by Unicode's terminators, 。！？ among them; a blank line ends one too (spec I20)."""

    size: int = 1600
    overlap: int = 160
    unit: Unit = "characters"
    tokenizer: TokenizerSource | None = None

    def __call__(self, document: Document) -> list[Span]:
        packer = Packer(
            size=self.size, overlap=self.overlap, measure=measure(self.unit, self.tokenizer), cut=cut, resume=resume
        )
        return packer.document(document.text)
