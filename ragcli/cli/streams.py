"""The three standard streams: made safe to write to, and the messages on standard error.

Data formats are written as UTF-8 whatever the locale says (RFC 8259 asks it of JSON); text for people is written in
the stream's own encoding, with what that cannot hold shown as an escape. Decides no layout.
"""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO

from ragcli.cli import inert
from ragcli.errors import UsageError


def make_safe() -> None:
    """No character can make a write to standard output or standard error fail, nor that the shell closed it (`>&-`).

    What is written to a closed one goes nowhere. Its descriptor is taken, so that no file of ours gets its number.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Send the rest of standard output nowhere, so that the interpreter's last flush can't fail either."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # captured: nothing will be flushed
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def say(kind: str, message: str) -> None:
    """One line on standard error: `kind: message`, or the message alone where `kind` is empty."""
    text = inert.line(message)
    sys.stderr.write(f"{kind}: {text}\n" if kind else f"{text}\n")  # one write: lines of a pipeline stay whole


def write(piece: bytes | str) -> None:
    """A piece of output: `bytes` are data and go out as they are, `str` is text for people."""
    buffer = getattr(sys.stdout, "buffer", None)
    if isinstance(piece, str):
        sys.stdout.write(piece)
    elif buffer is None:  # replaced by a StringIO: a caller in the same process collects the output
        sys.stdout.write(piece.decode())
    else:
        sys.stdout.flush()
        buffer.write(piece)


def flush() -> None:
    """Hand over what was written so far: a reader at the other end of a pipe waits for it."""
    sys.stdout.flush()


def output_is_terminal() -> bool:
    """Is a person looking at standard output?"""
    return sys.stdout.isatty()


def terminal_width() -> int:
    """Columns of the terminal."""
    import shutil

    return shutil.get_terminal_size().columns


def messages_are_terminal() -> bool:
    """Is a person looking at standard error?"""
    return sys.stderr.isatty()


def standard_input() -> BinaryIO:
    """Standard input, as bytes.

    Raises: UsageError where the shell closed it (`<&-`).
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed", "name a file, or pipe something in")
    return sys.stdin.buffer


def input_is_terminal() -> bool:
    """Can a person be asked?"""
    return sys.stdin is not None and sys.stdin.isatty()


def read_input() -> bytes:
    """All of standard input.

    Raises: UsageError where it is closed.
    """
    return standard_input().read()
