"""YAML front matter: the map between two `---` lines at the top of a text becomes metadata (spec I11).

Untrusted (spec I38): the safe loader, 64 KiB, no aliases (a few lines of them expand to gigabytes), shallow nesting.
What can't be used is a warning, and the text then keeps it: nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ragcli.read.metadata import flatten
from ragcli.types import Metadata

LARGEST = 64 * 1024  # characters
DEEPEST = 32  # levels of nesting

_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_OPENING = re.compile(r"---[ \t]*\r?\n")


class _Refused(ValueError):
    """YAML that is legal and not safe to expand."""


class FrontMatter(msgspec.Struct, frozen=True):
    """Metadata and where the body starts (characters of the text); (empty, 0) where there is no front matter."""

    metadata: Metadata = {}
    body: int = 0
    warning: str = ""


def split_front_matter(text: str) -> FrontMatter:
    """The front matter at the top of `text`. Two rules around prose are no front matter, and no warning."""
    if not text.startswith("---") or not (opening := _OPENING.match(text)):
        return FrontMatter()
    closing = _CLOSING.search(text, opening.end(), opening.end() + LARGEST)
    if not closing:
        return FrontMatter(warning=_too_long(text, opening.end()))
    import yaml

    try:
        values = _load(text[opening.end() : closing.start()])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return FrontMatter(warning=f"front matter not used: {_one_line(error)}")
    if values is not None and not isinstance(values, dict):
        return FrontMatter()
    return FrontMatter(flatten(values or {}), closing.end())


def _too_long(text: str, start: int) -> str:
    if _CLOSING.search(text, start) and re.match(r"[\w-]+:", text[start : start + 80]):
        return f"front matter not used: over {LARGEST // 1024} KiB"
    return ""


def _load(block: str) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if not _is_flat(block):
        _check(yaml.parse(block, Loader=loader))
    return yaml.load(block, Loader=loader)  # noqa: S506 - a safe loader, whichever is there


def _is_flat(block: str) -> bool:
    """Whether a look shows that there are no aliases and no deep nesting: true of nearly all front matter."""
    signs = ("*", "- -", "?", "\n" + " " * (DEEPEST // 2))
    return block.count("[") + block.count("{") < DEEPEST // 2 and not any(sign in block for sign in signs)


def _check(events: Iterable[Any]) -> None:
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise _Refused("it has YAML aliases, which are refused")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _Refused(f"it is nested more than {DEEPEST} levels deep")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
