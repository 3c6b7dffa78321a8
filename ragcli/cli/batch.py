"""`ragcli query --batch`: many queries over one open index, results streamed in the order of the input (spec C3).

A line is a query, or a JSON object with `text` and optionally `_id` (BEIR's queries.jsonl). A query without an id is
known by its line number. One query's error is reported on its line and the rest goes on; the exit code is then 4.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ragcli.cli import progress, streams
from ragcli.cli.common import Session
from ragcli.cli.formats import Reply, remark, render
from ragcli.errors import RagcliError, UsageError

if TYPE_CHECKING:
    from ragcli.pipeline import Pipeline
    from ragcli.types import Result

PARTLY_DONE = 4
STREAMED = ("json", "jsonl", "trec")
WIDE = (b"\xff\xfe", b"\xfe\xff")  # how UTF-16 and little-endian UTF-32 begin


class Line(msgspec.Struct, frozen=True):
    """One query of a batch; `fault` says why the line is none."""

    query_id: str
    text: str
    fault: str = ""


def run_batch(session: Session, source: str, chosen: str | None, *, explain: bool, fail_empty: bool) -> int:
    """Answer every line of `source` ("-" = standard input); returns the exit code.

    Raises:
        UsageError: a format that can't hold several results; a file that can't be read.
    """
    if chosen not in {None, *STREAMED}:
        raise UsageError(f"--batch can't be written as {chosen}", f"formats of a batch: {', '.join(STREAMED)}")
    name = "trec" if session.settings.output.format == "trec" else "jsonl"
    failed = found = 0
    remarks: set[str] = set()
    is_seen = session.common.quiet or streams.output_is_terminal()  # results that scroll by are progress enough
    with opened(source) as stream, progress.shown_when_slow(quiet=is_seen) as listen, session.open(listen) as pipeline:
        for line in lines(stream):
            result = _answer(session, pipeline, line, name, explain=explain)
            failed += result is None
            found += bool(result and result.ranking.hits)
            remarks.add(remark(name, result) if result else "")
    for said in filter(None, remarks):
        session.common.note(said)
    if failed:
        session.common.warn(f"queries that failed: {failed}")
        return PARTLY_DONE
    return 1 if fail_empty and not found else 0


@contextmanager
def opened(source: str) -> Iterator[BinaryIO]:
    """The batch file, or standard input for "-"."""
    if source == "-":
        yield streams.standard_input()
        return
    try:
        stream = open(source, "rb")  # noqa: PTH123, SIM115 - closed below; a path or a pipe such as /dev/fd/63
    except OSError as error:
        raise UsageError(f"--batch {source}: {error.strerror}") from error
    with stream:
        yield stream


def lines(stream: BinaryIO) -> Iterator[Line]:
    """Each line of a batch as a query, read as it comes; UTF-16 and UTF-32 are read whole first."""
    for number, data in enumerate(_in_utf8(stream), 1):
        yield _parsed(str(number), data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data)


def _in_utf8(stream: BinaryIO) -> Iterator[bytes]:
    first = stream.readline()
    if not first.startswith(WIDE) and b"\0" not in first:
        yield from chain([first] if first else [], stream)
        return
    from ragcli.read.decode import decode

    yield from io.BytesIO(decode(first + stream.read()).text.encode())


def _parsed(number: str, data: bytes) -> Line:
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        return Line(number, data.decode(errors="replace").strip(), "not UTF-8")
    if text.startswith("{"):
        return _parsed_object(number, text)
    return Line(number, text, "" if text else "the query is empty")


def _parsed_object(number: str, text: str) -> Line:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return Line(number, text, f"not JSON: {error}")
    query, query_id = found.get("text"), found.get("_id", found.get("id", number))
    if not isinstance(query_id, str | int) or isinstance(query_id, bool):
        return Line(number, text, "_id is neither text nor a whole number")
    if not isinstance(query, str):
        return Line(str(query_id), text, 'no text: a query is {"_id": …, "text": …}')
    return Line(str(query_id), query.strip(), "" if query.strip() else "the query is empty")


def _answer(session: Session, pipeline: Pipeline, line: Line, name: str, *, explain: bool) -> Result | None:
    """Write one line's result and give it back; None when the query failed."""
    if line.fault:
        _fail(session, line, line.fault, name)
        return None
    try:
        result = pipeline.retrieve(line.text, session.settings.retrieval)
    except RagcliError as error:
        _fail(session, line, error.message, name)
        return None
    for piece in render(name, Reply(result=result, query_id=line.query_id, explain=explain)):
        streams.write(piece)
    streams.flush()
    return result


def _fail(session: Session, line: Line, message: str, name: str) -> None:
    from ragcli.cli.formats.json import error_object

    if name != "trec":
        streams.write(msgspec.json.encode(error_object(line.query_id, line.text, message)) + b"\n")
        streams.flush()
    session.common.warn(f"query {line.query_id}: {message}")
