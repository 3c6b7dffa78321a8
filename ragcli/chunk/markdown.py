"""By section: no chunk crosses a heading, except that a section too small to stand alone joins the ones after it.

Works on `Document.headings`, so on HTML and DOCX as well. A section over the size is cut as the default
strategy cuts.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ragcli.chunk import recursive
from ragcli.chunk.measure import Measure, TokenizerSource, measure
from ragcli.chunk.pack import Packer, ink_end, ink_start
from ragcli.options import Unit
from ragcli.types import Document, Span

SMALL = 4  # a section under size / SMALL is too small to stand alone


class Markdown(msgspec.Struct, frozen=True):
    """Sections, small ones merged with the next while the sum fits (spec I20)."""

    size: int = 1600
    overlap: int = 160
    unit: Unit = "characters"
    tokenizer: TokenizerSource | None = None

    def __call__(self, document: Document) -> list[Span]:
        units = measure(self.unit, self.tokenizer)
        packer = Packer(size=self.size, overlap=self.overlap, measure=units, cut=recursive.cut, resume=recursive.resume)
        if not document.headings:
            return packer.document(document.text)
        merged = self._merged(document.text, sections(document), units)
        return [span for start, stop in merged for span in packer.spans(document.text, start, stop)]

    def _merged(self, text: str, parts: list[Span], units: Measure) -> Iterator[Span]:
        start, end = parts[0]
        for _, stop in parts[1:]:
            if within(text, start, end, self.size // SMALL, units) and within(text, start, stop, self.size, units):
                end = stop
            else:
                yield start, end
                start, end = end, stop
        yield start, end


def sections(document: Document) -> list[Span]:
    """The spans from each heading to the next, and what stands before the first; blank ones are part of the next."""
    text = document.text
    starts = sorted({heading.start for heading in document.headings if 0 < heading.start < len(text)})
    return list(zip([0, *starts], [*starts, len(text)], strict=True))


def within(text: str, start: int, stop: int, size: int, units: Measure) -> bool:
    """Whether the span, white space around it not counted, is at most `size` units."""
    start = ink_start(text, start, stop)
    end = ink_end(text, start, stop)
    if units.reach(text, start, end, size + 1) < end:
        return False
    return units.of(text, start, end) <= size
