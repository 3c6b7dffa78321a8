"""One question of `ragcli ask`, asked and shown: text as it comes, sources below it, what there is to say on the side.

Data goes to standard output, all else to standard error; which way an answer ended is its exit code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragcli.cli import inert, progress, streams
from ragcli.cli.common import Session

if TYPE_CHECKING:
    from ragcli.pipeline import Pipeline
    from ragcli.types import Answer, Event, Hit, Listener, Message, Observer

NO_ANSWER, BROKE_OFF = 1, 5  # exit codes
TAB = 4  # columns, as `inert.passage` has them


class Wanted(NamedTuple):
    """How the answers of one command are wanted."""

    session: Session
    is_json: bool
    is_live: bool  # pieces are shown as they come
    is_strict: bool
    history: Path | None
    observers: tuple[Observer, ...]


def answered(
    wanted: Wanted, listening: Listening, pipeline: Pipeline, question: str, history: Sequence[Message]
) -> tuple[int, Answer]:
    """Ask and show one question; the exit code and the answer. Raises: as `Pipeline.ask`."""
    from ragcli.asking import Hearing

    shown = Showing(wanted, listening)
    hearing = Hearing(listen=listening, on_text=shown.piece, on_sources=shown.begins, observer=shown.observe)
    try:
        answer = pipeline.ask(question, wanted.session.settings.retrieval, history=history, hearing=hearing)
    except BaseException:
        shown.broke_off()
        raise
    listening.pause()
    shown.rest(answer)
    if wanted.history and answer.outcome != "no-answer":
        from ragcli.cli.messages import append_turn

        append_turn(wanted.history, question, answer.text, is_whole=not answer.problem)
    return _code(wanted, answer), answer


class Listening:
    """Names the stage that runs while nothing is shown yet; silent from the answer's first word on."""

    def __init__(self, wanted: Wanted) -> None:
        self._quiet = wanted.session.common.quiet
        self._open: Any = None
        self._listen: Listener | None = None

    def __enter__(self) -> Listening:
        self.again()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def __call__(self, event: Event) -> None:
        if self._listen is not None:
            self._listen(event)

    def again(self) -> None:
        """A new question."""
        self._open = progress.shown_when_slow(quiet=self._quiet)
        self._listen = self._open.__enter__()

    def pause(self) -> None:
        """Something else is to be seen now."""
        if self._open is not None:
            self._listen = None
            self._open.__exit__(None, None, None)
            self._open = None


class Pieces:
    """A text that comes in pieces, as `inert.passage` shows it whole; without blank lines before and after it."""

    _UNDECIDED = re.compile(r"[\r\n\u200c\u200d]+\Z")  # what of it is seen depends on what comes

    def __init__(self) -> None:
        self._line = ""  # the one that is being written: what tabs and joiners look like depends on it
        self._held = ""
        self._begun = False

    def shown(self, piece: str) -> str:
        """What can be shown now."""
        text = self._held + piece if self._begun else (self._held + piece).lstrip()
        undecided = self._UNDECIDED.search(text)
        settled = text[: undecided.start()] if undecided else text
        self._held = text[len(settled) :]
        self._begun = self._begun or bool(text)
        return self._passage(settled)

    def rest(self) -> str:
        """What was held back for a piece that does not come."""
        return self._passage(self._held.rstrip())

    def _passage(self, text: str) -> str:
        known, line = inert.passage(self._line), self._line + text
        self._line = _end_of(line.rpartition("\n")[2].expandtabs(TAB))
        return inert.passage(line)[len(known) :]


def _end_of(line: str) -> str:
    """The end of a line that has no tabs: all that the look of what follows depends on.

    It begins where a tab would end, counted from the last carriage return, as `str.expandtabs` counts.
    """
    _, mark, tail = line.rpartition("\r")
    return mark + tail if len(tail) < 2 * TAB else tail[len(tail) - len(tail) % TAB - TAB :]


class Showing:
    """One answer on its way to the streams."""

    def __init__(self, wanted: Wanted, listening: Listening) -> None:
        self._wanted, self._listening = wanted, listening
        self._pieces = Pieces()
        self._begun = False
        self._engine = ""

    def begins(self, hits: Sequence[Hit], engine: str) -> None:  # noqa: ARG002 - a Hearing's
        """The sources are there, and who answers."""
        self._engine = engine

    def observe(self, messages: Sequence[Message]) -> None:
        """What is sent. Raises: what an observer raises."""
        if self._wanted.observers:
            self._listening.pause()
        for observer in self._wanted.observers:
            observer(messages)

    def piece(self, text: str) -> None:
        """A piece of the answer."""
        shown = self._pieces.shown(text) if self._wanted.is_live else ""
        if not shown:
            return
        from ragcli.cli.answers import heading

        if not self._begun:
            self._listening.pause()
            streams.write(heading(self._engine))
            self._begun = True
        streams.write(shown)
        streams.flush()

    def broke_off(self) -> None:
        """No more comes: the cursor goes to a line of its own."""
        self._listening.pause()
        if self._begun:
            streams.write(f"{self._pieces.rest()}\n")
            streams.flush()

    def rest(self, answer: Answer) -> None:
        """All that was not shown yet: answer, sources; warnings, notes, the summary on standard error."""
        from ragcli.cli import answers

        common = self._wanted.session.common
        if self._wanted.is_json:
            import msgspec

            streams.write(msgspec.json.encode(answers.answer_object(answer)) + b"\n")
        else:
            is_answer = answer.outcome != "no-answer"
            whole = answers.heading(answer.engine) * is_answer + answers.body(answer)
            streams.write(f"{self._pieces.rest()}\n" if self._begun else whole)
            streams.write(answers.sources(answer, str(Path.cwd())))
        streams.flush()
        for warning in answer.warnings:
            common.warn(warning)
        for note in answer.notes:
            common.note(note)
        if not self._wanted.is_json:
            common.tell(answers.summary(answer))


def _code(wanted: Wanted, answer: Answer) -> int:
    if answer.outcome == "no-answer":
        return NO_ANSWER
    if answer.problem:
        return BROKE_OFF
    if wanted.is_strict and (fault := _citation_fault(answer)):
        streams.say("error", f"--strict-citations: {fault}")
        return NO_ANSWER
    return 0


def _citation_fault(answer: Answer) -> str:
    """What is wrong with the citations; "" where nothing is."""
    if not any(one.valid for one in answer.citations):
        return "the answer cites no source"
    if any(not one.valid for one in answer.citations):
        return "the answer cites what was not sent"
    unsupported = sum(not one.supported for one in answer.statements)
    return f"{unsupported} of {len(answer.statements)} statements are not supported" if unsupported else ""
