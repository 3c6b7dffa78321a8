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


def in_shell(line: str, folder: Path) -> tuple[int, str, str]:
    """`line` run by sh, where `$R` is our command. Gives (code, output, messages)."""
    environment = os.environ | {"R": f"{sys.executable} -m ragcli", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def small_index(tmp_path: Path) -> Path:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.txt").write_text("the battery")
    assert in_shell("$R ingest c -q", tmp_path) == (0, "", "")
    return tmp_path


@pytest.mark.spec("C3", "C9")
@pytest.mark.parametrize("command", ["query battery -q", "--version", "ingest c --json -q", "inspect"])
def test_a_closed_output_is_quiet_and_the_code_is_as_if_it_were_written(small_index: Path, command: str) -> None:
    assert in_shell(f"$R {command} >&-", small_index) == (0, "", "")


def test_closed_messages_keep_the_data(small_index: Path) -> None:
    code, out, _ = in_shell("$R query battery --format paths 2>&-", small_index)
    assert (code, out.count("a.txt")) == (0, 1)
    assert in_shell("$R query battery --nope 2>&- >&- <&-", small_index) == (2, "", "")


@pytest.mark.spec("C7", "C9")
@pytest.mark.parametrize("command", ["query -", "ingest - --name q.txt", "query --batch -"])
def test_a_closed_input_is_named(small_index: Path, command: str) -> None:
    code, out, err = in_shell(f"$R {command} <&-", small_index)
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "error: standard input is closed"


@pytest.mark.spec("C7")
def test_a_reset_is_not_asked_of_a_closed_input(small_index: Path) -> None:
    code, _, err = in_shell("$R ingest c --reset <&-", small_index)
    assert (code, err.splitlines()[-1]) == (2, "hint: add --yes if that is meant")


@pytest.mark.spec("C7", "C9")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--filter", "a:=" + "[" * 100_000],
        ["--filter", "a:=" + "9" * 5000],
        ["--filter", "x" * 5000],
        ["--where", "score > " + "9" * 5000],
        ["--where", "score > " + "x" * 5000],
        ["--where", "x" * 5000],
        ["--top-k", "9" * 5000],
        ["--mode", "x" * 5000],
        ["--" + "x" * 5000],
    ],
)
def test_a_huge_value_is_an_error_of_one_short_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.txt").write_text("hello")
    assert main(["ingest", "c.txt", "-q"]) == 0
    assert main(["query", "hello", *arguments]) == 2
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("error: ")
    assert len(first) < 320


@pytest.mark.spec("C7")
def test_a_huge_value_of_a_variable_is_shortened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGCLI_RETRIEVAL__TOP_K", "9" * 5000)
    assert main(["query", "hello"]) == 2
    assert len(capsys.readouterr().err) < 320
    monkeypatch.setenv("RAGCLI_RETRIEVAL__TOP_K", "5")
    monkeypatch.setenv("RAGCLI_INGEST__TAGS", "[" * 100_000)
    assert main(["query", "hello"]) == 2
    assert len(capsys.readouterr().err) < 320


@pytest.mark.spec("C2")
def test_a_query_that_the_locale_can_not_read_is_utf_8(small_index: Path) -> None:
    (small_index / "c" / "b.txt").write_text("故乡 的 云")
    line = "$R ingest c -q && LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 $R query -q --format paths"
    assert in_shell(f"{line} 故乡", small_index)[:2] == (0, f"{small_index}/c/b.txt\n")
    assert in_shell(f"{line} 云 --where '\"故\" not in title'", small_index)[0] == 0
    code, _, err = in_shell(f"{line} $(printf '\\351')", small_index)
    assert (code, err.splitlines()) == (2, ["error: the query is not valid UTF-8: '\\udce9'"])


@pytest.mark.spec("R10")
def test_a_where_that_drops_all_says_why(small_index: Path) -> None:
    line = "$R ingest c -q --tag year:=2025 --checksum --reset --yes && $R query battery --where 'tag.year == \"2025\"'"
    _, out, err = in_shell(line, small_index)
    assert out == ""
    reason = 'tag.year == "2025": tag.year is 2025 (number); write tag.year == 2025'
    assert f"note: the best of them: {reason}" in err.splitlines()
