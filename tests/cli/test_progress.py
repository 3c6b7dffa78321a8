"""The line that a slow query shows on a terminal, and that a quick one, or a log, has none."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ragcli.cli import progress, streams
from ragcli.types import Event, ignore_event

SLOW = """
import sys
from ragcli.cli.progress import shown_when_slow
from ragcli.types import Event
with shown_when_slow(quiet=False, patience=PATIENCE) as listen:
    listen(Event("retrieving"))
    listen(Event("reranking", 7, 20, "passages"))
    sys.stdin.readline()
print("rich" in sys.modules)
"""


class OnTerminal:
    """A Python program whose standard error is a terminal."""

    def __init__(self, program: str) -> None:
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"},
        )  # fmt: skip
        os.close(theirs)

    def until(self, wanted: bytes) -> bytes:
        """What it wrote, once `wanted` is in it."""
        seen = b""
        while wanted not in seen:
            ready, _, _ = select.select([self._ours], [], [], 30)
            assert ready, seen
            seen += self._read()
        return seen

    def end(self) -> tuple[bytes, bytes]:
        """Let it go on; what it wrote to standard output, and since then to the terminal."""
        out, _ = self.process.communicate(b"\n", timeout=30)
        rest = b"".join(iter(self._read, b""))
        os.close(self._ours)
        return out, rest

    def _read(self) -> bytes:
        try:
            return os.read(self._ours, 65536)
        except OSError:  # Linux: the other end is closed
            return b""


@pytest.mark.spec("C5")
def test_a_slow_query_names_the_stage_that_runs_and_takes_the_line_away() -> None:
    terminal = OnTerminal(SLOW.replace("PATIENCE", "0.01"))
    seen = terminal.until(b"7/20 passages")
    assert b"reranking" in seen
    out, rest = terminal.end()
    assert out == b"True\n"
    assert rest.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h"))  # the line is erased, the cursor is there again


@pytest.mark.spec("C5", "C6")
def test_a_quick_query_draws_nothing_and_imports_no_rich() -> None:
    assert OnTerminal(SLOW.replace("PATIENCE", "3600")).end() == (b"False\n", b"")


@pytest.fixture
def quiet_or_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    terminal: list[bool] = []
    monkeypatch.setattr(streams, "messages_are_terminal", lambda: terminal[-1])
    yield terminal


@pytest.mark.spec("C5")
@pytest.mark.parametrize(("is_terminal", "quiet"), [(False, False), (True, True), (False, True)])
def test_in_a_log_or_when_quiet_nobody_listens(quiet_or_log: list[bool], is_terminal: bool, quiet: bool) -> None:
    quiet_or_log.append(is_terminal)
    with progress.shown_when_slow(quiet=quiet, patience=0) as listen:
        assert listen is ignore_event


@pytest.mark.spec("C5")
def test_only_the_stage_that_runs_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages follow each other on the one line; a stage that counts nothing shows no count."""
    monkeypatch.setattr(streams, "messages_are_terminal", lambda: True)
    with progress.shown_when_slow(quiet=False, patience=3600) as listen:
        assert isinstance(listen, progress._Waiting)
        listen._begin()
        for stage in ("retrieving", "mmr", "rerank"):
            listen(Event(stage))
        assert listen._progress is not None
        (task,) = listen._progress.tasks
        assert (task.description, task.total) == ("rerank", None)
        listen(Event("reranking", 3, 9, "passages"))
        (task,) = listen._progress.tasks
        assert (task.description, task.completed, task.total) == ("reranking", 3, 9)
