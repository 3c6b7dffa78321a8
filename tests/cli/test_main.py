"""The front door: every kind of error becomes one line and its exit code; streams never fail on a character."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragcli import cli, errors
from ragcli.cli import app, main, streams

COMMAND = [sys.executable, "-m", "ragcli"]


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def run(arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr(app, "run", run)


@pytest.mark.spec("C7", "C9")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RagcliError("no"), 1),
        (errors.OptionError("bm25.b", 2, "0 to 1"), 2),
        (errors.ConfigError("ragcli.yaml:3: no"), 2),
        (errors.IndexMissing("no index"), 3),
        (errors.IndexMismatch("another"), 3),
        (errors.IndexLocked("locked"), 1),
        (errors.NotReadable("no"), 4),
        (errors.RemoteError("no"), 5),
        (PermissionError(13, "Permission denied", "/x"), 1),
        (RuntimeError("what\nwas that"), 1),
    ],
)
def test_an_error_is_one_line_and_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    failing(monkeypatch, error)
    assert main(["query", "x"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] in (["error"], ["error", "hint"])


@pytest.mark.spec("C7")
def test_the_hint_is_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing(monkeypatch, errors.IndexMissing("no index at /x", "make one: ragcli ingest PATH"))
    main(["query", "x"])
    assert capsys.readouterr().err == "error: no index at /x\nhint: make one: ragcli ingest PATH\n"


@pytest.mark.spec("C7", "C13")
def test_a_hostile_message_stays_on_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, errors.ReadError("a\nb\x1b[31m.md: no"))
    main([])
    assert capsys.readouterr().err == "error: a\\nb\\x1b[31m.md: no\n"


@pytest.mark.spec("C7")
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing(monkeypatch, RuntimeError("odd"))
    assert main(["query", "x", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    main(["query", "--", "--debug"])
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.spec("C9")
def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert main([]) == cli.INTERRUPTED == 130


@pytest.mark.spec("C3")
def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen([*COMMAND, "query", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        err = process.stderr.read()
        assert (process.wait(), err) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.spec("C7")
def test_a_full_disk_is_an_error_of_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


@pytest.mark.spec("C2")
def test_no_character_makes_a_message_fail() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*COMMAND, "故乡"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no such command: \\u6545\\u4e61\n")


@pytest.mark.spec("C7")
@pytest.mark.parametrize(("value", "shown"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_variable_for_debug_works_like_the_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str, shown: bool
) -> None:
    failing(monkeypatch, RuntimeError("odd"))
    monkeypatch.setenv("RAGCLI_DEBUG", value)
    assert main(["query", "x"]) == 1
    assert ("Traceback" in capsys.readouterr().err) is shown


@pytest.mark.parametrize("kind", ["error", ""])
def test_a_message_is_written_at_once(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    pieces: list[str] = []
    monkeypatch.setattr(sys, "stderr", Stream())
    streams.say(kind, "no such thing")
    assert pieces == [f"{kind}: no such thing\n" if kind else "no such thing\n"]
