"""One JSON object a result: the contract of spec C11, version 1 (RFC 8259, UTF-8).

Keys are only ever added within a version. Text is exact: control characters are JSON's own escapes, never ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ragcli.cli.formats import Reply
from ragcli.types import ArmScore, Chunk, Drop, Hit, Step

SCHEMA = 1


def render(reply: Reply) -> Iterator[bytes]:
    """The object, on one line."""
    yield msgspec.json.encode(result_object(reply)) + b"\n"


def result_object(reply: Reply) -> dict[str, Any]:
    """The whole result as plain values."""
    result = reply.result
    identity = {} if reply.query_id is None else {"_id": reply.query_id}
    return {
        "schema": SCHEMA,
        **identity,
        "query": result.query,
        "mode": result.mode,
        "hits": [hit_object(rank, hit, explain=reply.explain) for rank, hit in enumerate(result.ranking.hits, 1)],
        "dropped": [_drop_object(drop) for drop in result.ranking.dropped],
        "stages": [_step_object(step, explain=reply.explain) for step in result.trace.steps],
        "warnings": list(result.warnings),
        "notes": list(result.notes),
    }


def error_object(query_id: str, query: str, message: str) -> dict[str, Any]:
    """What stands on the line of a query of a batch that failed."""
    return {"schema": SCHEMA, "_id": query_id, "query": query, "error": message}


def hit_object(rank: int, hit: Hit, *, explain: bool) -> dict[str, Any]:
    """One hit; `normalized`, `page`, `page_end`, `heading` only where there is one, `terms` only when explained."""
    chunk = hit.chunk
    found: dict[str, Any] = {
        "rank": rank,
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "score": hit.score,
        "score_kind": hit.score_kind,
        **({} if hit.normalized is None else {"normalized": hit.normalized}),
        "text": chunk.text,
        "path": chunk.path,
        "start": chunk.start,
        "end": chunk.end,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        **_where_known(chunk),
        "metadata": chunk.metadata,
        "stale": hit.stale,
        "arms": {name: _arm_object(arm) for name, arm in hit.arms.items()},
    }
    return {**found, "terms": dict(hit.terms)} if explain else found


def _arm_object(arm: ArmScore) -> dict[str, Any]:
    return {"rank": arm.rank, "score": arm.score, "part": arm.part}


def _where_known(chunk: Chunk) -> Mapping[str, object]:
    known = {"page": chunk.page, "page_end": chunk.page_end, "heading": chunk.heading or None}
    return {key: value for key, value in known.items() if value is not None}


def _drop_object(drop: Drop) -> dict[str, Any]:
    chunk = drop.hit.chunk
    return {
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "stage": drop.stage,
        "reason": drop.reason,
    }


def _step_object(step: Step, *, explain: bool) -> dict[str, Any]:
    ran = {"name": step.stage, "in": step.taken, "out": step.given, "ms": round(step.seconds * 1000, 3)}
    return {**ran, "options": step.options} if explain else ran
