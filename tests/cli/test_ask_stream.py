"""`ragcli ask` while the answer is being written: pieces, interrupts, ends (spec A7, C9, C13)."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.cli import inert
from ragcli.cli.answering import Pieces
from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.streams import CUT, PAUSE, ChatServer, Script, delta, event, spoken, whole

ANSWER = "Thirty metres [Source 1]."
SLOW = Script((event(delta("Thirty ")), PAUSE, event(delta("metres.")), event("[DONE]")))
FAMILY = "\U0001f469\u200d\U0001f467"  # two emoji and what joins them to one


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    shell = Shell(capsys)
    trees(shell, tmp_path)
    return shell


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with answering(monkeypatch, spoken(ANSWER)) as server:
        yield server


# ------------------------------------------------------------------------------------------------- a process of its own


def started(folder: Path, model: ChatServer, *arguments: str) -> subprocess.Popen[bytes]:
    """`ragcli ask` as a process of its own, its output a pipe."""
    environ = {**os.environ, **model.environ, "RAGCLI_CHAT__MODEL": "toy", "RAGCLI_CHAT__RETRIES": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "ragcli", "ask", QUESTION, *arguments],
        cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.spec("A7")
def test_pieces_are_shown_as_they_come(shell: Shell, model: ChatServer, tmp_path: Path) -> None:
    model.script(SLOW)
    with started(tmp_path, model, "--stream") as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"Thirty "
        model.go()
        assert process.stdout.read().startswith(b"metres.\n\nSources, none of them cited:\n")
    assert process.returncode == 0


@pytest.mark.spec("A7", "C9")
def test_an_interrupt_ends_it_cleanly(shell: Shell, model: ChatServer, tmp_path: Path) -> None:
    model.script(SLOW)
    with started(tmp_path, model, "--stream", "--history", "talk.jsonl") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(7) == b"Thirty "
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read(), process.stderr.read().decode()
    assert (process.returncode, out) == (130, b"\n")
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert (tmp_path / "talk.jsonl").read_text("utf-8") == ""  # it is no turn


@pytest.mark.spec("A7", "C3")
def test_a_reader_that_leaves_is_no_fault(shell: Shell, model: ChatServer, tmp_path: Path) -> None:
    model.script(SLOW)
    with started(tmp_path, model, "--stream") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(7) == b"Thirty "
        process.stdout.close()
        model.go()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# -------------------------------------------------------------------------------------------------------- on a terminal


class Terminal:
    """`ragcli ask` with a terminal as its standard input and output; standard error is a pipe."""

    def __init__(self, folder: Path, model: ChatServer, *arguments: str) -> None:
        environ = {**os.environ, **model.environ, "RAGCLI_CHAT__MODEL": "toy", "TERM": "dumb"}
        self._ours, theirs = os.openpty()
        self._read = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ragcli", "ask", *arguments],
            cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        os.close(self._ours)

    def until(self, wanted: str) -> str:
        """What it wrote since the last call, up to and with `wanted`."""
        while wanted.encode() not in self._read:
            ready, _, _ = select.select([self._ours], [], [], 30)
            assert ready, self._read
            self._read += os.read(self._ours, 65536)
        before, mark, self._read = self._read.partition(wanted.encode())
        return (before + mark).decode().replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> tuple[int, str]:
        """The exit code, and all that it wrote to standard error."""
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err.decode()


@pytest.mark.spec("A7")
def test_a_terminal_sees_pieces_as_they_come(shell: Shell, model: ChatServer, tmp_path: Path) -> None:
    model.script(SLOW)
    with Terminal(tmp_path, model, QUESTION) as terminal:
        terminal.until("Thirty ")
        model.go()
        assert terminal.until("trees/oak.md:1") == "metres.\n\nSources, none of them cited:\n  [1] trees/oak.md:1"
        assert terminal.end()[0] == 0


@pytest.mark.spec("A7", "A12")
def test_an_interrupt_ends_the_answer_and_not_the_conversation(shell: Shell, model: ChatServer, tmp_path: Path) -> None:
    model.script(SLOW)
    with Terminal(tmp_path, model, "--chat") as terminal:
        terminal.until("> ")
        terminal.type(f"{QUESTION}\n")
        terminal.until("Thirty ")
        terminal.process.send_signal(signal.SIGINT)
        terminal.until("> ")
        model.script(spoken(ANSWER))
        terminal.type("how tall grows an elm\n")
        terminal.until("not cited: ")
        terminal.until("> ")
        terminal.type("\x04")
        code, err = terminal.end()
    assert code == 0
    assert "note: interrupted: this answer is not kept" in err
    assert "Traceback" not in err
    assert [message["role"] for message in model.messages] == ["system", "user"]  # it is no turn


# -------------------------------------------------------------------------------------------------- whole, or piecewise


@pytest.mark.spec("A7")
def test_into_a_pipe_it_goes_whole_and_without_a_stream_it_is_asked_for_whole(shell: Shell, model: ChatServer) -> None:
    assert shell("ask", QUESTION).out.startswith(ANSWER)
    assert model.requests[-1].body["stream"] is True
    model.script(whole(ANSWER))
    assert shell("ask", QUESTION, "--no-stream").out.startswith(ANSWER)
    assert "stream" not in model.requests[-1].body


@pytest.mark.spec("C4")
def test_the_option_stands_above_the_settings(shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCLI_ANSWER__STREAM", "false")
    model.script(whole(ANSWER), spoken(ANSWER))
    assert shell("ask", QUESTION).code == 0
    assert "stream" not in model.requests[-1].body
    assert shell("ask", QUESTION, "--stream").code == 0
    assert model.requests[-1].body["stream"] is True


@pytest.mark.parametrize(
    ("option", "reason"), [("--json", "JSON is one object"), ("--renumber", "sources are numbered once")]
)
def test_what_can_only_come_whole_says_so(option: str, reason: str, shell: Shell, model: ChatServer) -> None:
    assert f"note: --stream has no effect: {reason}" in shell("ask", QUESTION, "--stream", option).err
    assert "no effect" not in shell("ask", QUESTION, option).err


# -------------------------------------------------------------------------------------------------- the same, and inert

ODD = st.text("\r\n\t\u200d\u200c\x1b\u202eab ä日[", max_size=4)


@pytest.mark.spec("C13", "A7")
@given(st.lists(ODD, max_size=12))
def test_a_text_in_pieces_is_shown_as_the_whole_of_it(texts: list[str]) -> None:
    texts = ["a", *texts, "b"]  # no blank lines around it
    pieces = Pieces()
    shown = "".join(pieces.shown(text) for text in texts) + pieces.rest()
    assert shown == inert.passage("".join(texts))


@pytest.mark.spec("C13", "A7")
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a\r", "\nb"], "a\nb"),
        (["a\r", "b"], "a\\rb"),
        (["x", "\ty"], "x   y"),
        (["xyz\n", "ab", "\tc"], "xyz\nab  c"),
        (list(FAMILY), FAMILY),
        (["a", "\u200d", "b"], "a<U+200D>b"),
        (["a", "\u200d"], "a<U+200D>"),
        (["\n", "\n ", "a", "\n\n"], "a"),
        (["\x1b", "[31m"], "\\x1b[31m"),
        (["", "\n"], ""),
    ],
)
def test_what_depends_on_the_piece_that_follows(texts: list[str], expected: str) -> None:
    pieces = Pieces()
    assert "".join(pieces.shown(text) for text in texts) + pieces.rest() == expected


@pytest.mark.spec("C13", "A7")
def test_both_ways_show_the_same(shell: Shell, model: ChatServer) -> None:
    model.script(spoken("\n\n", "Tall:\r", "\n-", "\t", *FAMILY, " \x1b", "[31m[bold]", " [Source 1].", "\n\n"))
    at_once = shell("ask", QUESTION)
    assert at_once.out.startswith(f"Tall:\n-   {FAMILY} \\x1b[31m[bold] [Source 1].\n\nSources:\n")
    assert shell("ask", QUESTION, "--stream").out == at_once.out


@pytest.mark.spec("A1", "A7")
def test_so_do_extracts(shell: Shell) -> None:
    assert shell("ask", QUESTION, "--stream").out == shell("ask", QUESTION).out


# ----------------------------------------------------------------------------------------------------------- broken off


@pytest.mark.spec("A7", "C9")
@pytest.mark.parametrize("options", [[], ["--stream"], ["--strict-citations"]])
def test_what_came_before_it_broke_off_is_shown_and_marked(options: list[str], shell: Shell, model: ChatServer) -> None:
    model.script(Script((event(delta("Thirty \u200d")), event(delta("\r")), CUT)))
    done = shell("ask", QUESTION, *options)
    assert done.code == 5  # whatever it cites
    assert done.out.startswith("Thirty <U+200D>\n\nSources, none of them cited:\n  [1] trees/oak.md:1\n")
    assert "warning: the answer is incomplete: openai:toy: " in done.err


@pytest.mark.spec("A7", "A8", "C9")
def test_a_stream_that_breaks_off_before_its_first_word_is_no_answer(shell: Shell, model: ChatServer) -> None:
    model.script(Script((b": ping\n\n", CUT)))
    done = shell("ask", QUESTION, "--stream", "--history", "talk.jsonl")
    assert (done.code, done.out) == (5, "")
    assert Path("talk.jsonl").read_text("utf-8") == ""
