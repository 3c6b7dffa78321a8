"""JSON Lines: one hit a line; of a batch, one result object a line (spec C11)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ragcli.cli.formats import Reply
from ragcli.cli.formats.json import hit_objects, result_object
from ragcli.explain import rounds


def render(reply: Reply) -> Iterator[bytes]:
    """Lines of JSON; none when there is no hit."""
    if reply.query_id is not None:
        yield msgspec.json.encode(result_object(reply)) + b"\n"
        return
    for hit in hit_objects(reply, rounds(reply.result)):
        yield msgspec.json.encode(hit) + b"\n"
