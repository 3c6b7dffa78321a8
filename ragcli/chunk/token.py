"""Windows of cl100k_base tokens: full ones, cut where the token ends, moved to the grapheme boundary before it."""

from __future__ import annotations

import msgspec

from ragcli.chunk.measure import TokenizerSource, measure
from ragcli.chunk.pack import Packer, everywhere, exactly
from ragcli.options import Unit
from ragcli.types import Document, Span


class Token(msgspec.Struct, frozen=True):
    """`size` and `overlap` are tokens, whatever `unit` says (spec I20)."""

    size: int = 1600
    overlap: int = 160
    unit: Unit = "tokens"
    tokenizer: TokenizerSource | None = None

    def __call__(self, document: Document) -> list[Span]:
        packer = Packer(
            size=self.size,
            overlap=self.overlap,
            measure=measure("tokens", self.tokenizer),
            cut=everywhere,
            resume=exactly,
        )
        return packer.document(document.text)
