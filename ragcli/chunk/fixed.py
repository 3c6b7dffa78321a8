"""Windows of equal length, whatever the text says. The plainest baseline."""

from __future__ import annotations

import msgspec

from ragcli.chunk.measure import TokenizerSource, measure
from ragcli.chunk.pack import Packer, everywhere, exactly
from ragcli.options import Unit
from ragcli.types import Document, Span


class Fixed(msgspec.Struct, frozen=True):
    """Cut after `size` units, take up `overlap` units before the cut (spec I20)."""

    size: int = 1600
    overlap: int = 160
    unit: Unit = "characters"
    tokenizer: TokenizerSource | None = None

    def __call__(self, document: Document) -> list[Span]:
        packer = Packer(
            size=self.size,
            overlap=self.overlap,
            measure=measure(self.unit, self.tokenizer),
            cut=everywhere,
            resume=exactly,
        )
        return packer.document(document.text)
