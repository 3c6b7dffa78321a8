"""Comma-separated values by RFC 4180: always a header, CRLF, fields quoted where they must be."""

from __future__ import annotations

import io
from collections.abc import Iterator

import msgspec

from ragcli.cli.formats import Reply
from ragcli.explain import rank_of
from ragcli.types import Hit

COLUMNS = (
    *("rank", "score", "score_kind", "document_id", "chunk_index", "path", "start", "end"),
    *("start_line", "end_line", "page", "heading", "stale", "text", "metadata", "compressed_text"),
)


def render(reply: Reply) -> Iterator[bytes]:
    """A header and a row a hit. A field may hold line ends: read it with a CSV reader."""
    import csv

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    writer.writerows(row(position, hit) for position, hit in enumerate(reply.result.ranking.hits, 1))
    yield buffer.getvalue().encode()


def row(position: int, hit: Hit) -> tuple[object, ...]:
    """The values of the hit at that position, in the order of `COLUMNS`; metadata as one JSON object; absent ones are
    empty. The rank is that of relevance: reordered, rows stand in another order."""
    chunk = hit.chunk
    place = (chunk.start, chunk.end, chunk.start_line, chunk.end_line, "" if chunk.page is None else chunk.page)
    metadata = msgspec.json.encode(chunk.metadata).decode()
    name = (rank_of(position, hit), hit.score, hit.score_kind, chunk.document_id, chunk.index, chunk.path)
    return (*name, *place, chunk.heading, hit.stale or "", chunk.text, metadata, hit.compressed_text or "")
