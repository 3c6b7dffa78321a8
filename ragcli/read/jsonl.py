"""JSON Lines: one record a line, one document a record (BEIR's form; see `records`).

A line that can't be read is a `Problem` with its line number, and the rest goes in. The request may hold a run of whole
lines that starts on line `first_line`, so a collection of any size is read in constant memory. One with the byte order
mark of UTF-16 or UTF-32 comes whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ragcli.read.decode import BYTE_ORDER_MARK, decode, is_wide
from ragcli.read.records import document_of
from ragcli.types import Document, Problem, ReadRequest


def read(request: ReadRequest) -> Iterator[Document | Problem]:
    """A document for each record, a problem for each line that is none; blank lines are nothing."""
    path = request.source.relative
    data = request.data
    if request.first_line == 1 and data.startswith(BYTE_ORDER_MARK):
        data = data[len(BYTE_ORDER_MARK) :]
    if request.first_line == 1 and is_wide(data):
        decoded = decode(data)
        yield from (Problem(path, "decoding", warning) for warning in decoded.warnings)
        data = decoded.text.encode()
    yield from _records(data, path, request.first_line)


def _records(data: bytes, path: str, first_line: int) -> Iterator[Document | Problem]:
    parse = msgspec.json.Decoder().decode
    for line, raw in enumerate(data.split(b"\n"), first_line):
        if not raw or raw.isspace():
            continue
        try:
            record = parse(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            yield Problem(path, "malformed", f"line {line}: {_why(error)}")
            continue
        if isinstance(record, dict):
            yield document_of(record, path, line, line, "jsonl")
        else:
            yield Problem(path, "malformed", f"line {line}: a record is a JSON object, this is none")


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    words = str(error)
    return f"not JSON ({words if words[1:2].isupper() else words[:1].lower() + words[1:]})"
