"""The default: cut at the strongest separator in reach (paragraph, line, sentence, word), else between graphemes.

The idea of LangChain's RecursiveCharacterTextSplitter without its recursion: instead of splitting everything and gluing
it together again, look backward from where the chunk is full for the strongest separator in its second half.
"""

from __future__ import annotations

import msgspec

from ragcli.chunk.breaks import first_sentence, first_word, strongest
from ragcli.chunk.measure import TokenizerSource, measure
from ragcli.chunk.pack import Packer, middle
from ragcli.options import Unit
from ragcli.types import Document, Span


def cut(text: str, done: int, limit: int) -> int:
    """The last place of the strongest separator in the second half of what a chunk can add."""
    return strongest(text, middle(done, limit), limit)


def resume(text: str, low: int, end: int) -> int:
    """A sentence's start in the first half of the overlap, else a word's start, else a grapheme's."""
    place = first_sentence(text, low, (low + end) // 2)
    if place < 0:
        place = first_word(text, low, end)
    return low if place < 0 else place


class Recursive(msgspec.Struct, frozen=True):
    """Paragraph > line > sentence > word > grapheme (spec I20)."""

    size: int = 1600
    overlap: int = 160
    unit: Unit = "characters"
    tokenizer: TokenizerSource | None = None

    def __call__(self, document: Document) -> list[Span]:
        packer = Packer(
            size=self.size, overlap=self.overlap, measure=measure(self.unit, self.tokenizer), cut=cut, resume=resume
        )
        return packer.document(document.text)
