"""JSON Lines: one hit a line; of a batch, one result object a line (spec C11)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ragcli.cli.formats import Reply
from ragcli.cli.formats.json import hit_object, result_object


def render(reply: Reply) -> Iterator[bytes]:
    """Lines of JSON; none when there is no hit."""
    if reply.query_id is not None:
        yield msgspec.json.encode(result_object(reply)) + b"\n"
        return
    for rank, hit in enumerate(reply.result.ranking.hits, 1):
        yield msgspec.json.encode(hit_object(rank, hit, explain=reply.explain)) + b"\n"
