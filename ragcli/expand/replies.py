"""What a language model wrote, as lines: without thoughts, fences, numbers, bullets, quotes, labels, repeats. Pure."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w+-]*[ \t\r]*$", re.MULTILINE)
_LEAD = re.compile(
    r"^(?:\s*(?:[-*+•‣·>]|#{1,6}|\(?\d{1,3}[.):]|\(?[a-z]\))(?:\s+|$)"  # no letter with a full stop: C. S. Lewis
    r"|\s*(?:(?:rewritten|standalone|stand-alone)\s+)?(?:question|query|q|search|lex|vec|hyde)\s*:\s*)+",
    re.IGNORECASE,
)
_QUOTES = "\"'`“”„‘’«»*_ \t"


def lines(reply: str, most: int) -> tuple[str, ...]:
    """The first `most` distinct lines that hold a letter or a digit, cleaned; "Here they are:" is none of them."""
    text = _THOUGHT.sub("", reply)
    text = _FENCE.sub("", text[_end_of_thought(text) :])
    found: dict[str, str] = {}
    for line in text.splitlines():
        cleaned = _cleaned(line)
        if any(character.isalnum() for character in cleaned) and not cleaned.endswith(":"):
            found.setdefault(cleaned.casefold(), cleaned)
    return tuple(found.values())[:most]


def _end_of_thought(text: str) -> int:
    """Where a thought ends whose beginning is not there: some templates write it into the prompt."""
    end = text.lower().rfind("</think>")
    return end + len("</think>") if end >= 0 else 0


def _cleaned(line: str) -> str:
    """What stands inside quotes, labels and marks, in whichever order they are."""
    while (inner := _LEAD.sub("", line.strip(_QUOTES))) != line:
        line = inner
    return " ".join(line.split())


def first_line(reply: str) -> str:
    """The first of them; "" where there is none."""
    return next(iter(lines(reply, 1)), "")
