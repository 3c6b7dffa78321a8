"""The text of sources as a prompt holds them (spec A2): what a token budget counts, and what a model is given.

Sources are joined by a line `---` between blank lines. Each is headed by a line `[Source N] where it is from`, N from 1
in the order given::

    [Source 1] handbook/leave.md, lines 37-65: Telling us

    If you are ill, ring the office before ten. …

    ---

    [Source 2] …

The text of a source is data (spec A13): a line of it that could be taken for a label, for the line between sources, for
a turn of the conversation or for a model's control token gets a backslash before that; nothing else is changed, and
nothing is cut. Writes no instructions and no question: that is the prompt's work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ragcli.types import Chunk, Hit

SEPARATOR = "\n\n---\n\n"


def context(hits: Sequence[Hit]) -> str:
    """All of it; "" of no hits."""
    return SEPARATOR.join(blocks(hits))


def blocks(hits: Sequence[Hit]) -> tuple[str, ...]:
    """One text a hit, in their order, numbered from 1."""
    return tuple(block(number, hit) for number, hit in enumerate(hits, 1))


def block(number: int, hit: Hit) -> str:
    """A hit as source `number`: its label, and its text, or what a compression left of that."""
    text = hit.chunk.text if hit.compressed_text is None else hit.compressed_text
    return f"[Source {number}] {origin(hit.chunk)}\n\n{escaped(text)}"


def origin(chunk: Chunk) -> str:
    """Where a chunk is from, on one line: the document, its lines or pages, the heading it stands under."""
    heading = f": {_one_line(chunk.heading)}" if chunk.heading else ""
    return f"{_one_line(chunk.document_id)}, {_place(chunk)}{heading}"


def _place(chunk: Chunk) -> str:
    if chunk.page is not None:
        last = chunk.page_end
        return f"page {chunk.page}" if last in {None, chunk.page} else f"pages {chunk.page}-{last}"
    if chunk.start_line == chunk.end_line:
        return f"line {chunk.start_line}"
    return f"lines {chunk.start_line}-{chunk.end_line}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def escaped(text: str) -> str:
    """The text with a backslash before what could pass for a part of the prompt."""
    return _forgeries().sub(r"\\\g<0>", text)


def forgeries(text: str) -> int:
    """How many such places the text has."""
    return sum(1 for _ in _forgeries().finditer(text))


@cache
def _forgeries() -> re.Pattern[str]:
    """A label; a line of dashes alone; a role with a colon at the start of a line; a control token."""
    line = r"(?:^|(?<=[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]))[^\S\r\n]*"
    return re.compile(
        rf"{line}\[\s*source\b|{line}-{{3,}}(?=[^\S\r\n]*(?:[\r\n]|\Z))"
        rf"|{line}(?:system|user|assistant|human|question)[^\S\r\n]*:"
        r"|<\|(?=[\w ]{1,40}\|>)|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>",
        re.IGNORECASE,
    )
