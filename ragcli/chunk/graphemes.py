"""Where a text may be cut without cutting a grapheme cluster (Unicode Standard Annex 29, by `regex`'s \\X).

Only the text around a cut point is looked at, so the work doesn't grow with the document. All positions are in
characters; `start` is always a boundary itself, which makes what stands before it irrelevant.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Patterns = tuple[Any, Any, Any]

SIMPLE = "\u0300"  # below it nothing joins its neighbour but CR LF
# Between two of these is always a boundary, whatever stands around them (CR LF excepted).
SURE = r"[\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]"
# Flags first: \X counts the regional indicators before each one again, which is quadratic in a long run of them.
CLUSTER = r"\p{RI}\p{RI}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X"


@cache
def _patterns() -> Patterns:
    import regex

    pair = rf"(?!\r\n){SURE}{SURE}"
    return regex.compile(pair), regex.compile(rf"(?r){pair}"), regex.compile(CLUSTER)


def floor(text: str, start: int, index: int) -> int:
    """The last boundary at or before `index`, at worst `start`."""
    if index <= start or index >= len(text):
        return index
    if text[index - 1] < SIMPLE and text[index] < SIMPLE and text[index] != "\n":
        return index
    sure, last_sure, cluster = _patterns()
    if sure.match(text, index - 1, index + 1):
        return index
    found = last_sure.search(text, start, index)
    anchor = found.start() + 1 if found else start
    # one character past the index decides whether a cluster ends there: the rules look no further ahead
    last = 0
    for match in cluster.finditer(text[anchor : index + 1]):
        last = match.start()
    return anchor + last


def ceiling(text: str, start: int, index: int, stop: int) -> int:
    """The first boundary at or after `index`, at most `stop`, which is one too."""
    below = floor(text, start, index)
    if below == index:
        return index
    *_, cluster = _patterns()
    return below + len(cluster.match(text[below:stop])[0])
