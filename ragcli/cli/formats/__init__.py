"""How results are written: one file a format, each with `render(reply) -> Iterator[bytes | str]`.

`bytes` are data, written as UTF-8; `str` is text for people. A format is found by its name and imported only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from ragcli.cli import inert
from ragcli.types import Hit, Result, Trace

if TYPE_CHECKING:
    from ragcli.cli.highlight import Highlighter

FIRST_QUERY_ID = "1"


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


def parts_of_score(hit: Hit) -> list[str]:
    """For people: each arm with its rank and score, then the named parts that add up to the score."""
    arms = [f"{name} rank {arm.rank} score {arm.score:.4f}" for name, arm in hit.arms.items()]
    terms = " + ".join(f"{name} {value:.4f}" for name, value in hit.terms.items())
    return [*arms, f"{hit.score_kind} {hit.score:.4f} = {terms}"] if terms else arms


def stage_lines(trace: Trace) -> list[str]:
    """For people: what ran, in order, a line a step: name, hits in and out (of an arm: chunks in), milliseconds."""
    return [
        f"{inert.line(step.stage)}: {step.taken:,} in, {step.given:,} out, {step.seconds * 1000:.1f} ms"
        for step in trace.steps
    ]
