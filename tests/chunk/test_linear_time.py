"""Spec I21: twice the text is at most about twice the work. It is counted in calls, not timed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ragcli.chunk import graphemes
from tests.chunk.strategies import CHARACTER_STRATEGIES, document

pytestmark = pytest.mark.spec("I21")

LINES = {
    "no space": "a",
    "ideographs": "人工智能",
    "combining marks": "\u0301",
    "flags": "\U0001f1e9",
    "full stops": ".",
    "quotes": '."',
    "tabs": "\t",
    "joined emoji": "👩\u200d",
    "definitions": "def f():\n    return 1\n",
    "blank lines": "x\n\n",
    "unclosed": "{\n  [\n",
}


def calls(chunker: Any, text: str) -> int:
    """How many functions, Python's or built in, run while the text is cut."""
    count = 0

    def tick(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    chunker(document(text, headings=False))  # patterns are compiled the first time
    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        chunker(document(text, headings=False))
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@pytest.mark.parametrize("piece", LINES.values(), ids=LINES)
def test_twice_the_text_is_twice_the_calls(strategy: Any, piece: str) -> None:
    size, length = 400, 40_000
    one = calls(strategy(size, 40), piece * (length // len(piece)) + "z")
    two = calls(strategy(size, 40), piece * (2 * length // len(piece)) + "z")
    assert two <= 2.2 * one + 50


class Counting:
    """The cluster pattern, counting the characters it is given."""

    def __init__(self, pattern: Any) -> None:
        self.pattern = pattern
        self.scanned = 0

    def finditer(self, text: str) -> Any:
        self.scanned += len(text)
        return self.pattern.finditer(text)

    def match(self, text: str) -> Any:
        self.scanned += len(text)
        return self.pattern.match(text)


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@pytest.mark.parametrize("piece", LINES.values(), ids=LINES)
def test_clusters_are_looked_for_in_a_few_chunks_of_text_a_cut(
    strategy: Any, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut scans back to its chunk's start at most, never to the document's: combining marks, flags."""
    sure, last_sure, cluster = graphemes._patterns()
    counting = Counting(cluster)
    monkeypatch.setattr(graphemes, "_patterns", lambda: (sure, last_sure, counting))
    text = piece * (40_000 // len(piece)) + "z"
    spans = strategy(400, 40)(document(text, headings=False))
    assert counting.scanned <= 8 * 400 * len(spans)
