"""One JSON object a result: the contract of spec C11, version 1 (RFC 8259, UTF-8).

Keys are only ever added within a version. Text is exact: control characters are JSON's own escapes, never ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ragcli.cli.formats import Reply
from ragcli.explain import Round, Stop, journey, place_of, rank_of, rounds
from ragcli.types import ArmScore, Chunk, Drop, Hit, Step

SCHEMA = 1


def render(reply: Reply) -> Iterator[bytes]:
    """The object, on one line."""
    yield msgspec.json.encode(result_object(reply)) + b"\n"


def result_object(reply: Reply) -> dict[str, Any]:
    """The whole result as plain values."""
    result, ran = reply.result, rounds(reply.result)
    identity = {} if reply.query_id is None else {"_id": reply.query_id}
    return {
        "schema": SCHEMA,
        **identity,
        "query": result.query,
        "mode": result.mode,
        "hits": list(hit_objects(reply, ran)),
        "dropped": [_drop_object(drop, ran) for drop in result.ranking.dropped],
        "stages": [_step_object(step, explain=reply.explain) for step in result.trace.steps],
        "warnings": list(result.warnings),
        "notes": list(result.notes),
    }


def error_object(query_id: str, query: str, message: str) -> dict[str, Any]:
    """What stands on the line of a query of a batch that failed."""
    return {"schema": SCHEMA, "_id": query_id, "query": query, "error": message}


def hit_objects(reply: Reply, ran: Sequence[Round]) -> Iterator[dict[str, Any]]:
    """The hits, in the order of the list. `ran`: the rounds of the result."""
    for position, hit in enumerate(reply.result.ranking.hits, 1):
        yield _hit_object(position, hit, ran, explain=reply.explain)


def _hit_object(position: int, hit: Hit, ran: Sequence[Round], *, explain: bool) -> dict[str, Any]:
    """One hit; what it has not (`normalized`, `page`, `heading`, `parent` …) is left out, `terms` come explained."""
    chunk = hit.chunk
    found: dict[str, Any] = {
        "rank": rank_of(position, hit),
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "score": hit.score,
        "score_kind": hit.score_kind,
        **({} if hit.normalized is None else {"normalized": hit.normalized}),
        **_retrieved(hit),
        "position": position,
        "text": chunk.text,
        **({} if hit.compressed_text is None else {"compressed_text": hit.compressed_text}),
        "path": chunk.path,
        "start": chunk.start,
        "end": chunk.end,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        **_where_known(chunk),
        **({} if hit.parent is None else {"parent": {"index": hit.parent.index, "children": hit.parent.children}}),
        "metadata": chunk.metadata,
        "stale": hit.stale,
        "arms": {name: _arm_object(arm) for name, arm in hit.arms.items()},
        "trace": [_stop_object(stop) for stop in journey(hit, ran)],
    }
    return {**found, "terms": dict(hit.terms)} if explain else found


def _retrieved(hit: Hit) -> dict[str, Any]:
    """What retrieval gave, where stages made another score of it."""
    score, kind = hit.retrieved
    return {} if (score, kind) == (hit.score, hit.score_kind) else {"retrieval_score": score, "retrieval_kind": kind}


def _stop_object(stop: Stop) -> dict[str, Any]:
    return {
        "stage": stop.stage,
        "rank_before": stop.rank_before,
        "rank": stop.rank,
        "score": stop.score,
        "score_kind": stop.score_kind,
        "parts": dict(stop.parts),
        "note": stop.note,
    }


def _arm_object(arm: ArmScore) -> dict[str, Any]:
    return {"rank": arm.rank, "score": arm.score, "part": arm.part}


def _where_known(chunk: Chunk) -> Mapping[str, object]:
    known = {"page": chunk.page, "page_end": chunk.page_end, "heading": chunk.heading or None}
    return {key: value for key, value in known.items() if value is not None}


def _drop_object(drop: Drop, ran: Sequence[Round]) -> dict[str, Any]:
    """A hit that is gone; `rank`: where it stood before that stage."""
    chunk, rank = drop.hit.chunk, place_of(drop, ran)
    return {
        "document_id": chunk.document_id,
        "chunk_index": chunk.index,
        "stage": drop.stage,
        "reason": drop.reason,
        **({} if rank is None else {"rank": rank}),
    }


def _step_object(step: Step, *, explain: bool) -> dict[str, Any]:
    """A step; explained, with its options and warnings. The result's warnings hold those of all steps."""
    ran = {"name": step.stage, "in": step.taken, "out": step.given, "ms": round(step.seconds * 1000, 3)}
    return {**ran, "options": step.options, "warnings": list(step.warnings)} if explain else ran
