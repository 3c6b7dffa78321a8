"""How results are written: one file a format, each with `render(reply) -> Iterator[bytes | str]`.

`bytes` are data, written as UTF-8; `str` is text for people. A format is found by its name and imported only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from ragcli.cli import inert
from ragcli.errors import shortened
from ragcli.fuse import STAGE
from ragcli.types import ArmScore, Hit, Result, Step, Trace

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


def parts_of_score(hit: Hit, trace: Trace) -> list[str]:
    """For people: each arm with its rank and score and what these add, the sum of that, the parts of the BM25 score."""
    steps = {step.stage: step for step in trace.steps}
    arms = [_arm(name, arm, steps, hit.score_kind) for name, arm in hit.arms.items()]
    if STAGE in steps:
        arms.append(_sum(hit))
    if not hit.terms:
        return arms
    bm25 = hit.arms.get("bm25")
    score = hit.score if bm25 is None or bm25.score is None else bm25.score
    return [*arms, f"bm25 {score:.4f} = " + " + ".join(f"{name} {part:.4f}" for name, part in hit.terms.items())]


def stage_lines(trace: Trace) -> list[str]:
    """For people: what ran, in order, a line a step: name, hits in and out, time, options, warnings.

    Of an arm the chunks that it could find are what goes in.
    """
    return [inert.line(_stage(step)) for step in trace.steps]


def _arm(name: str, arm: ArmScore, steps: Mapping[str, Step], kind: str) -> str:
    """`dense rank 3 cosine 0.6123: 0.5 × 0.8312 = 0.4156`; without fusion only what stands before the colon."""
    found = f"{name} {_found(name, arm, steps.get(name))}"
    if STAGE not in steps:
        return found
    weights = steps[STAGE].options.get("weights")
    weight = weights.get(name) if isinstance(weights, Mapping) else None
    scaled = f"{weight:g} × {_figure(arm.part / weight, kind)} = " if weight else ""
    return f"{found}: {scaled}{_figure(arm.part, kind)}"


def _found(name: str, arm: ArmScore, step: Step | None) -> str:
    """Where the arm put the hit, and its own score."""
    if arm.score is None:
        rank = "" if arm.rank is None else f"rank {arm.rank} "
        return rank + ("no vector" if name == "dense" else "no score")
    score = f"{'cosine' if name == 'dense' else 'score'} {arm.score:.4f}"
    if arm.rank is not None:
        return f"rank {arm.rank} {score}"
    if step is None:
        return f"not among its best, {score}"
    return f"{f'not among its best {step.given:,}' if step.given else 'found nothing'}, {score}"


def _sum(hit: Hit) -> str:
    parts = " + ".join(f"{name} {_figure(arm.part, hit.score_kind)}" for name, arm in hit.arms.items())
    is_share = hit.normalized is None or hit.normalized == hit.score
    share = "" if is_share else f" ({hit.normalized:.4f} of the best there can be)"
    return f"{hit.score_kind} {_figure(hit.score, hit.score_kind)} = {parts}{share}"


def _figure(value: float, kind: str) -> str:
    """Reciprocal ranks differ in their fifth digit."""
    return f"{value:.6f}" if kind == "rrf" else f"{value:.4f}"


def _stage(step: Step) -> str:
    options = ", ".join(f"{name} {_option(value)}" for name, value in step.options.items() if value is not None)
    counts = f"{step.stage}: {step.taken:,} in, {step.given:,} out, {step.seconds * 1000:.1f} ms"
    return "; ".join([f"{counts} ({options})" if options else counts, *step.warnings])


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_option(member)}" for name, member in value.items())
    if isinstance(value, tuple | list):
        return shortened(" ".join(map(str, value)) or "none")
    return f"{value:g}" if isinstance(value, float) else shortened(str(value))
