"""Tab-separated values, one hit a line whatever it holds: `\\t`, `\\n`, `\\r` and `\\\\` stand for those characters.

The escapes of IANA's text/tab-separated-values as PostgreSQL, ClickHouse and Miller read them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.cli.formats import Reply
from ragcli.cli.formats.csv import COLUMNS, row

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def render(reply: Reply) -> Iterator[bytes]:
    """A header line and a line a hit."""
    yield _line(COLUMNS)
    for position, hit in enumerate(reply.result.ranking.hits, 1):
        yield _line(row(position, hit))


def _line(values: tuple[object, ...]) -> bytes:
    return ("\t".join(str(value).translate(_ESCAPES) for value in values) + "\n").encode()
