"""How results are written: one file a format, each with `render(reply) -> Iterator[bytes | str]`.

`bytes` are data, written as UTF-8; `str` is text for people. A format is found by its name and imported only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from ragcli.cli.wording import counted
from ragcli.types import Hit, Result

if TYPE_CHECKING:
    from ragcli.cli.highlight import Highlighter

FIRST_QUERY_ID = "1"
MOST_CHILDREN = 5  # that a parent names to people; JSON has them all


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One result and how it is wanted.

    `query_id` is None for a single query. `width` is the terminal's, in columns. `null` ends paths with NUL.
    To people, paths below `folder`, the working folder, are shown relative to it.
    """

    result: Result
    query_id: str | None = None
    explain: bool = False
    full: bool = False
    null: bool = False
    folder: str = ""
    width: int = 80
    highlighter: Highlighter | None = None


def render(name: str, reply: Reply) -> Iterator[bytes | str]:
    """`reply` in the format of that name, piece by piece."""
    from importlib import import_module

    module = import_module(f"ragcli.cli.formats.{name}")
    pieces: Iterator[bytes | str] = module.render(reply)
    return pieces


def remark(name: str, result: Result) -> str:
    """What there is to say to people of a result in that format; "" of most."""
    if name != "trec":
        return ""
    from ragcli.cli.formats import trec

    return trec.remark(result)


def location(hit: Hit, folder: str = "") -> str:
    """Where a hit stands: path and lines (`leave.md:12-40`), or path and page (`manual.pdf p. 3`).

    A path below `folder` is shown relative to it.
    """
    chunk = hit.chunk
    path = chunk.path or chunk.document_id
    if folder and path.startswith(folder.rstrip("/") + "/"):
        path = path[len(folder.rstrip("/")) + 1 :]
    if chunk.page is not None:
        last = chunk.page_end if chunk.page_end not in {None, chunk.page} else None
        return f"{path} p. {chunk.page}-{last}" if last else f"{path} p. {chunk.page}"
    lines = f"{chunk.start_line}" if chunk.start_line == chunk.end_line else f"{chunk.start_line}-{chunk.end_line}"
    return f"{path}:{lines}"


def passage_of(hit: Hit, *, full: bool) -> str:
    """What people see of a hit: its whole text, or what a compression left of it."""
    return hit.chunk.text if full or hit.compressed_text is None else hit.compressed_text


def parent_of(hit: Hit) -> str:
    """Which found chunks a parent stands for, the best one first: `parent of #7, #8`; "" of a chunk itself."""
    if hit.parent is None:
        return ""
    named = ", ".join(f"#{child}" for child in hit.parent.children[:MOST_CHILDREN])
    more = len(hit.parent.children) - MOST_CHILDREN
    return f"parent of {named}" + (f" and {more} more" if more > 0 else "")


def extract_of(hit: Hit, *, full: bool) -> str:
    """That what people see is an extract, and of how much; "" of a whole passage."""
    return "" if full or hit.compressed_text is None else f"extract of {counted(len(hit.chunk.text), 'character')}"
