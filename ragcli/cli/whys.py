"""What `inspect --why` shows: the cause, where the expected text stood, what would have kept it (spec A10)."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ragcli.cli import inert
from ragcli.errors import shortened
from ragcli.types import ArmScore

if TYPE_CHECKING:
    from ragcli.why import Expected, Why

SCHEMA = 1
SHOWN = 10  # chunks that hold the text
LONGEST_ANSWER = 300
WIDTH, INDENT = 80, 10


def why_object(why: Why) -> dict[str, Any]:
    """All of it as plain values."""
    from ragcli.cli.answers import answer_object

    return {
        "schema": SCHEMA,
        "question": why.question,
        "search": why.search,
        "cause": why.cause,
        "because": why.because,
        "expect": why.expect,
        "documents": [place.document_id for place in why.places],
        "expected": [_expected_object(one) for one in why.expected],
        "changes": [{"options": change.options, "source": change.source} for change in why.changes],
        "advice": list(why.advice),
        **({} if why.answer is None else {"answer": answer_object(why.answer)}),
        "warnings": list(why.warnings),
        "notes": list(why.result.notes),
    }


def _expected_object(one: Expected) -> dict[str, Any]:
    return {
        "document_id": one.document_id,
        "chunk_index": one.chunk_index,
        "source": one.source,
        "arms": {name: {"rank": arm.rank, "score": arm.score} for name, arm in one.arms.items()},
        "ranks": [{"stage": stage, "before": before, "after": after} for stage, before, after in one.ranks],
        "reason": one.reason,
    }


def text(why: Why) -> str:
    """All of it in words."""
    return "".join(f"{line}\n" for one in _lines(why) for line in _folded(inert.line(one)))


def _folded(line: str) -> list[str]:
    """The line as several of 80 columns; what has no blank to break at stays whole."""
    return wrap(line, WIDTH, subsequent_indent=" " * INDENT, break_long_words=False, break_on_hyphens=False)


def _lines(why: Why) -> Iterator[str]:
    yield f"question  {why.question}"
    if why.search != why.question:
        yield f"search    {why.search}"
    yield f"cause     {why.cause}"
    yield f"          {why.because}"
    if why.expect:
        yield f"expected  {shortened(why.expect)}"
        holding = ", ".join(place.document_id for place in why.places[:SHOWN]) or "no document"
        more = f" and {len(why.places) - SHOWN} more" if len(why.places) > SHOWN else ""
        yield f"          in {holding}{more}"
    for one in why.expected[:SHOWN]:
        yield f"  {one.document_id}#{one.chunk_index}" + (f"  source {one.source}" if one.source else "")
        yield from (f"    {name}: {_arm(arm)}" for name, arm in one.arms.items())
        if one.ranks:
            yield f"    {_way(one)}"
        if one.reason:
            yield f"    {one.reason}"
    for change in why.changes:
        yield f"tried     {change.options}: it is source {change.source}"
    for advice in why.advice:
        yield f"hint      {advice}"
    if why.answer is not None:
        yield f"answer    {why.answer.engine}: {shortened(why.answer.text, LONGEST_ANSWER)}"


def _arm(arm: ArmScore) -> str:
    rank = f"rank {arm.rank:,}" if arm.rank is not None else "not found"
    return rank if arm.score is None else f"{rank}, score {arm.score:.4f}"


def _way(one: Expected) -> str:
    """`rank 7 → 5 by redundancy → dropped by cut`."""
    first = one.ranks[0][1]
    moves = (f"{'dropped' if after is None else after} by {stage}" for stage, _, after in one.ranks)
    return " → ".join([f"rank {first}", *moves])
