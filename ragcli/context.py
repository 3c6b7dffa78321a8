"""The text of sources as a prompt holds them (spec A2): what a token budget counts, and what a model is given.

Sources are joined by a line `---` between blank lines. Each is headed by a line `[Source N] where it is from`, N from 1
in the order given::

    [Source 1] handbook/leave.md, lines 37-65: Telling us

    If you are ill, ring the office before ten. …

    ---

    [Source 2] …

The text of a source is data (spec A13): what in it could be taken for a label, for the line between sources or for a
turn of the conversation gets a backslash before it; a control token of a model gets one inside, since a tokenizer finds
such a token wherever it stands. Nothing else is changed, and nothing is cut. Names and headings, which stand in labels,
are treated alike. Writes no instructions and no question: that is the prompt's work.
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
    return f"[Source {number}] {escaped(origin(hit.chunk))}\n\n{escaped(text)}"


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
    """The text with a backslash before, or inside, what could pass for a part of the prompt."""
    return _forgeries().sub(_broken, text)


def _broken(match: re.Match[str]) -> str:
    found = match[0]
    if match.lastgroup == "token":
        return f"{found[0]}\\{found[1:]}"
    mark = found.lstrip()
    return f"{found[: len(found) - len(mark)]}\\{mark}"


def forgeries(text: str) -> int:
    """How many such places the text has."""
    return sum(1 for _ in _forgeries().finditer(text))


@cache
def _forgeries() -> re.Pattern[str]:
    """A label; a line of dashes alone; a role with a colon at the start of a line; a control token (`token`).

    Control tokens are those of ChatML, Llama 2 and 3, Mistral, Gemma, Phi, DeepSeek, Qwen (its tool calls), and the
    marks of begin and end that sentencepiece models share.
    """
    ends = r"\r\n\v\f\x1c-\x1e\x85\u2028\u2029"
    line = rf"(?:^|(?<=[{ends}]))[^\S\r\n]*"
    return re.compile(
        rf"\[\s*sources?\s*\d|{line}\[\s*source\b|{line}-{{3,}}(?=[^\S\r\n]*(?:[{ends}]|\Z))"
        rf"|{line}(?:system|user|assistant|human|question|context|tool)[^\S\r\n]*:"
        r"|(?P<token><[|\uff5c](?=[\w \u2581./-]{1,40}[|\uff5c]>)"
        r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_[A-Z]+)\]"
        r"|<</?SYS>>|</?(?:s|bos|eos|pad|unk|(?:start|end)_of_turn|tool_(?:call|response)|im_(?:start|end))>)",
        re.IGNORECASE,
    )
