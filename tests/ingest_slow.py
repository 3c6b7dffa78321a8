"""A chunk strategy that takes its time over documents that say so: for tests of what is told meanwhile."""

from __future__ import annotations

import time

import msgspec

from ragcli.types import Document, Span

SECONDS = 1.5


class Slow(msgspec.Struct, frozen=True):
    """One chunk a document; `slow` in it costs `SECONDS`."""

    size: int
    overlap: int
    unit: str

    def __call__(self, document: Document) -> list[Span]:
        if "slow" in document.text:
            time.sleep(SECONDS)
        return [(0, len(document.text))]
