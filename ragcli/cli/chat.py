"""`ragcli ask --chat`: questions, a line each, with the turns before them (spec A12, R27).

On a terminal Ctrl-C ends an answer, and at the prompt the chat; Ctrl-D or /exit ends it too. A question that fails is
told, and the next one can be asked; where standard input is no terminal the exit code is then 4. So it is of an answer
that broke off, or that --strict-citations refuses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ragcli.cli import streams
from ragcli.cli.answering import Listening, Wanted, answered
from ragcli.cli.answers import error_object
from ragcli.cli.retrieval import query_text
from ragcli.errors import RagcliError
from ragcli.types import Message

if TYPE_CHECKING:
    from ragcli.pipeline import Pipeline

PARTLY = 4  # exit code: some questions failed
PROMPT = "> "
ENDS = ("/exit", "/quit")


def converse(wanted: Wanted, listening: Listening, pipeline: Pipeline, first: str, before: Sequence[Message]) -> int:
    """Asks what comes until nothing more does; returns the exit code."""
    history, failed = list(before), 0
    for question in _questions(wanted, listening, first):
        try:
            code, answer = answered(wanted, listening, pipeline, question, history)
        except RagcliError as error:
            failed += 1
            _tell(wanted, question, error)
            continue
        except KeyboardInterrupt:
            if not streams.input_is_terminal():
                raise
            streams.say("note", "interrupted: this answer is not kept")
            continue
        if answer.outcome != "no-answer":
            failed += code != 0
            history += [Message("user", question), Message("assistant", answer.text)]
    return PARTLY if failed and not streams.input_is_terminal() else 0


def _tell(wanted: Wanted, question: str, error: RagcliError) -> None:
    if wanted.is_json:
        streams.write(msgspec.json.encode(error_object(question, error.message)) + b"\n")
        streams.flush()
    streams.say("error", error.message)
    if error.hint:
        streams.say("hint", error.hint)


def _questions(wanted: Wanted, listening: Listening, first: str) -> Iterator[str]:
    """The first one, then a line each, without blank ones."""
    if first:
        yield first
    is_terminal = streams.input_is_terminal()
    if is_terminal:
        _prepare_editing()
    while True:
        listening.pause()
        line = _typed(wanted) if is_terminal else _piped()
        if line is None or line.strip() in ENDS:
            return
        if line.strip():
            listening.again()
            yield line.strip()


def _typed(wanted: Wanted) -> str | None:
    """A line of the terminal; None at its end."""
    if not wanted.session.common.quiet:
        sys.stderr.write("\n")
    try:
        if streams.output_is_terminal():
            return input(PROMPT)
        sys.stderr.write(PROMPT)  # input() would write it into the pipe
        sys.stderr.flush()
        return sys.stdin.readline() or None
    except EOFError:
        sys.stderr.write("\n")
        return None


def _piped() -> str | None:
    data = streams.standard_input().readline()
    return query_text_of(data) if data else None


def query_text_of(data: bytes) -> str:
    """A line of standard input. Raises: UsageError: it is not UTF-8."""
    if not data.strip():
        return ""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return query_text([data.decode("utf-8", "surrogateescape").strip()])


def _prepare_editing() -> None:
    """Lines can be edited, and fetched back with the arrow keys, where Python was built with readline."""
    try:
        import readline  # noqa: F401 - input() uses it once it is there
    except ImportError:
        return
