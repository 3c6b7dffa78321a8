"""What `inspect --prompt` shows: the messages as they would be sent, and the ledger of their tokens (spec A11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragcli.cli import explained, inert
from ragcli.cli.answers import prompt_text
from ragcli.cli.formats import location
from ragcli.types import Drop, Hit, Part

if TYPE_CHECKING:
    from ragcli.asking import Draft

SCHEMA = 1


def draft_object(question: str, engine: str, draft: Draft) -> dict[str, Any]:
    """The prompt as plain values."""
    from ragcli.models.chat_reply import as_sent

    prompt = draft.prompt
    return {
        "schema": SCHEMA,
        "question": question,
        "search": draft.search,
        "engine": engine,
        "messages": [as_sent(message) for message in prompt.messages],
        "tokens": prompt.tokens,
        "counted_by": prompt.counted_by,
        "window": prompt.window,
        "reserve": prompt.reserve,
        "limit": prompt.limit,
        "parts": [{"name": part.name, "source": part.source, "tokens": part.tokens} for part in prompt.parts],
        "sources": [_source_object(number, hit) for number, hit in enumerate(prompt.sources, 1)],
        "dropped": [_drop_object(drop) for drop in _drops(draft)],
        "escaped": [{"source": number, "places": places} for number, places in prompt.forged],
        "confidence": {
            "cosine": draft.confidence.cosine,
            "coverage": draft.confidence.coverage,
            "enough": draft.confidence.is_enough,
        },
        "warnings": list(draft.warnings),
        "notes": list(draft.result.notes),
    }


def _source_object(number: int, hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "number": number,
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "path": chunk.path,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "score": hit.score,
        "score_kind": hit.score_kind,
    }


def _drop_object(drop: Drop) -> dict[str, Any]:
    chunk = drop.hit.chunk
    return {
        "document_id": chunk.document_id, "chunk_index": chunk.index, "stage": drop.stage, "reason": drop.reason,
    }  # fmt: skip


def _drops(draft: Draft) -> list[Drop]:
    return [*draft.result.ranking.dropped, *draft.prompt.dropped]


def text(question: str, engine: str, draft: Draft, folder: str = "") -> str:
    """The prompt in words: messages, ledger, what was dropped. Paths below `folder` are shown relative to it."""
    return "".join(
        [
            f"question  {inert.line(question)}\n",
            f"search    {inert.line(draft.search)}\n" if draft.search != question else "",
            f"engine    {inert.line(engine)}\n\n",
            prompt_text(draft.prompt.messages),
            "\n",
            *(f"{line}\n" for line in _ledger(draft, folder)),
        ]
    )


def _ledger(draft: Draft, folder: str) -> Iterator[str]:
    prompt = draft.prompt
    yield f"tokens, counted by {prompt.counted_by}:"
    for part in prompt.parts:
        yield inert.line(f"  {_label(part):<11}{part.tokens:>8,}  {_origin(part, prompt.sources, folder)}".rstrip())
    yield f"  {'prompt':<11}{prompt.tokens:>8,}"
    if prompt.limit is None:
        yield "  the model's window is not known (chat.context_window)"
    else:
        kept = f"of a window of {prompt.window:,}, {prompt.reserve:,} kept for the answer"
        yield f"  {'room':<11}{prompt.limit:>8,}  {kept}"
    for number, places in prompt.forged:
        yield f"  escaped in source {number}: {places} (what looked like a part of a prompt)"
    drops = _drops(draft)
    if drops:
        yield f"dropped: {len(drops)}"
    yield from (f"  {explained.drop_line(drop)}" for drop in drops)
    enough = "enough to answer from" if draft.confidence.is_enough else "not enough: no model would be asked"
    yield f"confidence: {draft.confidence.words}: {enough}"


def _label(part: Part) -> str:
    return part.name if part.source is None else f"source {part.source}"


def _origin(part: Part, sources: tuple[Hit, ...], folder: str) -> str:
    if part.source is None:
        return "roles, labels, what joins the parts" if part.name == "frame" else ""
    hit = sources[part.source - 1]
    return f"{location(hit, folder)}  {hit.chunk.heading}".rstrip()
