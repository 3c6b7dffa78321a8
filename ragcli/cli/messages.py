"""Files of messages: a conversation that goes on (`--history`), a log of what was sent (`--prompt-log`). JSON lines.

A line of a history is {"role": …, "content": …}; other keys are kept for who wrote them and not read. What an answer's
turn adds is appended in one write, so that a killed run leaves whole lines, and two of them don't mix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ragcli.errors import UsageError, shortened
from ragcli.types import Message

SCHEMA = 1
ROLES = ("system", "user", "assistant")


def read_history(path: Path) -> tuple[Message, ...]:
    """The messages of a file, () where it is not there yet.

    Raises: UsageError: a line that holds no message; the file can't be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"--history {path} is no regular file", "name a file of messages, or one to be made")
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise UsageError(f"--history {path}: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--history {path} is not UTF-8", "convert it: iconv -t UTF-8") from error
    return tuple(_message(line, f"{path}:{number}") for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _message(line: str, place: str) -> Message:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: no JSON: {shortened(line)}", "a line is one message") from error
    role, content = (value.get("role"), value.get("content")) if isinstance(value, dict) else (None, None)
    if role not in ROLES or not isinstance(content, str):
        raise UsageError(f"{place}: no message", f'a line has "role" ({", ".join(ROLES)}) and "content", a text')
    return Message(role, content)


def check_writable(path: Path) -> None:
    """Raises: UsageError: nothing can be appended to the file. One that is not there is made, for its owner alone."""
    append(path, b"")


def append_turn(path: Path, question: str, answer: str, *, is_whole: bool) -> None:
    """Adds a question and its answer. Raises: UsageError."""
    said = {"role": "assistant", "content": answer, **({} if is_whole else {"incomplete": True})}
    append(path, b"".join(msgspec.json.encode(one) + b"\n" for one in ({"role": "user", "content": question}, said)))


def append(path: Path, data: bytes) -> None:
    """Adds to the end of a file: all of it, or nothing. Raises: UsageError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _write(descriptor, _after_a_line(path, data))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "name a file that can be written to") from error


def _write(descriptor: int, data: bytes) -> None:
    """Writes all of it. Where the room ends, what was written of it is taken back, unless others have gone on."""
    before, done = os.fstat(descriptor).st_size, 0
    try:
        while done < len(data):
            done += os.write(descriptor, data[done:])
    except OSError:
        if done and os.fstat(descriptor).st_size == before + done:
            os.ftruncate(descriptor, before)
        raise


def _after_a_line(path: Path, data: bytes) -> bytes:
    """The data, on a line of its own where somebody left the last one open."""
    if not data or not path.is_file() or not path.stat().st_size:
        return data
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return data if file.read(1) == b"\n" else b"\n" + data


class PromptLog:
    """An Observer that adds each prompt to a file: a line with the time, what it was sent to, and the messages."""

    def __init__(self, path: Path, **about: str) -> None:
        """Raises: UsageError: the file can't be written to."""
        self._path, self._about = path, about
        check_writable(path)

    def __call__(self, messages: Sequence[Message]) -> None:
        """Adds a line, the messages in the form in which a service gets them."""
        from ragcli.models.chat_reply import as_sent

        line: Mapping[str, object] = {
            "schema": SCHEMA, "time": datetime.now(UTC).isoformat(timespec="milliseconds"), **self._about,
            "messages": [as_sent(message) for message in messages],
        }  # fmt: skip
        append(self._path, msgspec.json.encode(line) + b"\n")
