"""The bytes of a source, as requests to a reader: a whole file, or runs of whole lines of a collection.

A collection (JSONL) may be larger than memory: it comes in runs of a few MiB that end at a line feed, and the size
limit is one of a record. In UTF-16 and UTF-32 a byte 10 need not end a line: there it comes whole. Every other source
is one request. Parses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from ragcli.errors import NotReadable, NotSupported
from ragcli.read.decode import HEAD, is_wide
from ragcli.read.walk import STDIN, STREAMED
from ragcli.types import Problem, ReadRequest, Source

RUN = 4 * 1024 * 1024  # bytes: large enough to cost nothing, small enough for many workers


def requests(source: Source, *, max_bytes: int, stdin: BinaryIO | None = None) -> Iterator[ReadRequest | Problem]:
    """What to hand to `formats.read`, in order; a `Problem` is a record of a collection over `max_bytes`.

    Raises:
        NotReadable: the system refuses ("unreadable"), or the file is gone ("vanished").
        NotSupported: a file that is no collection is over `max_bytes` ("too-large").
    """
    with _opened(source.location, stdin) as opened:
        if source.relative.lower().endswith(STREAMED):
            yield from _collection(source, opened, max_bytes)
        else:
            yield _whole(source, opened, max_bytes)


@contextmanager
def _opened(location: str, stdin: BinaryIO | None = None) -> Iterator[BinaryIO]:
    """The source, open; what the system says against opening or reading it is a `NotReadable`."""
    try:
        with nullcontext(stdin) if location == STDIN and stdin else Path(location).open("rb") as opened:
            yield opened
    except FileNotFoundError as error:
        raise NotReadable(f"{location}: not there any more", kind="vanished") from error
    except OSError as error:
        raise NotReadable(f"{location}: {error.strerror} (errno {error.errno})") from error


def head(source: Source) -> ReadRequest:
    """The first bytes of a file, enough to tell its format by.

    Raises:
        NotReadable: as `requests`.
    """
    with _opened(source.location) as stream:
        return ReadRequest(source=source, data=stream.read(HEAD))


def _collection(source: Source, stream: BinaryIO, max_bytes: int) -> Iterator[ReadRequest | Problem]:
    first = stream.read(RUN)
    if is_wide(first):
        yield _whole(source, stream, max_bytes, first)
    else:
        yield from _runs(source, stream, max_bytes, first)


def _whole(source: Source, stream: BinaryIO, max_bytes: int, first: bytes = b"") -> ReadRequest:
    """All of it, of which `first` is read already."""
    # Python allocates what is asked for, not what comes.
    data = first + stream.read(max(min(source.size, max_bytes) + 1 - len(first), 0))
    if len(data) > source.size:  # it has grown, or nobody knows its size
        data += stream.read(max(max_bytes + 1 - len(data), 0))
    if len(data) > max_bytes:
        raise NotSupported(f"{source.location}: over ingest.max_file_bytes = {max_bytes}", kind="too-large")
    return ReadRequest(source=source, data=data)


def _runs(source: Source, stream: BinaryIO, max_bytes: int, first: bytes) -> Iterator[ReadRequest | Problem]:
    """Runs of whole lines. A line over the limit is a problem, and an empty line in its run: the count goes on."""
    line, rest, too_long = 1, b"", False
    for block in chain((first,), iter(partial(stream.read, RUN), b"")):
        end = block.rfind(b"\n") + 1
        if not end:
            rest, too_long = (b"", True) if too_long or len(rest) + len(block) > max_bytes else (rest + block, False)
            continue
        data = block[block.find(b"\n") : end] if too_long else rest + block[:end]
        if too_long:
            yield _over(source, line, max_bytes)
        rest, too_long = block[end:], False
        yield from _checked(source, data, line, max_bytes)
        line += data.count(b"\n")
    if too_long:
        yield _over(source, line, max_bytes)
    elif rest:
        yield from _checked(source, rest, line, max_bytes)


def _checked(source: Source, data: bytes, first_line: int, max_bytes: int) -> Iterator[ReadRequest | Problem]:
    if len(data) > max_bytes:
        lines = data.split(b"\n")
        for number, text in enumerate(lines):
            if len(text) > max_bytes:
                lines[number] = b""
                yield _over(source, first_line + number, max_bytes)
        data = b"\n".join(lines)
    yield ReadRequest(source=source, data=data, first_line=first_line)


def _over(source: Source, line: int, max_bytes: int) -> Problem:
    return Problem(source.relative, "too-large", f"line {line}: a record over ingest.max_file_bytes = {max_bytes}")
