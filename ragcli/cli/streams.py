"""The three standard streams: made safe to write to, and the messages on standard error.

Data formats are written as UTF-8 whatever the locale says (RFC 8259 asks it of JSON); text for people is written in
the stream's own encoding, with what that cannot hold shown as an escape. Decides no layout.
"""

from __future__ import annotations

import io
import os
import sys

from ragcli.cli import inert


def make_safe() -> None:
    """No character can make a write to standard output or standard error fail."""
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


def read_input() -> bytes:
    """All of standard input."""
    return sys.stdin.buffer.read()
