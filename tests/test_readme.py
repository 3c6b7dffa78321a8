"""The README can't drift: its tour runs word for word, and every command, option, key and field stands in it.

A ```console block is a tour: lines that start with `$ ` are run, in order, on a terminal of 80 columns; the lines below
a command must come in its output, or in its messages, in that order. `…` stands for any text, a line of `…` alone for
any lines; durations are not compared. Every command must end with 0 (one that shall not is written `command; echo $?`).

The tour is that of a newcomer with the default embedder; the model's files are those of the user who runs the tests.
Processors round differently, and a model's vectors with them: a number from 0 to 1 with four decimals, as cosines and
fused scores are written, may be off by 0.002. BM25 scores above 1, ranks and everything else may not.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ragcli import config, errors
from ragcli.cli.app import build
from ragcli.models import catalogue
from ragcli.options import Settings
from ragcli.read import formats

if TYPE_CHECKING:
    from ragcli.models.place import ModelPlace

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SCHEMA, OF_ASK = (
    json.loads((ROOT / "tests" / "cli" / f"{one}.schema.json").read_text("utf-8"))["$defs"] for one in ("query", "ask")
)
COLUMNS = 80

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_DURATION = re.compile(r"\d+(?:\\\.\d+)?(?=\\? m?s\b)")  # in a line that went through re.escape
_SHARE = re.compile(r"(?<![\d.])[01]\.\d{4}(?!\d)")
_ESCAPED_SHARE = re.compile(r"(?<![\d.])[01]\\\.\d{4}(?!\d)")
OFF = 0.002


class Command(NamedTuple):
    """A command of the tour, the line of the README it stands on, and what it shows."""

    line: int
    text: str
    shown: tuple[str, ...]


def tour() -> Iterator[Command]:
    """Every command of the console blocks, in order."""
    for block in re.finditer(r"^```console\n(.*?)^```$", README, re.DOTALL | re.MULTILINE):
        first = README.count("\n", 0, block.start(1)) + 1
        lines = block[1].splitlines()
        starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            shown = tuple(line.rstrip() for line in lines[start + 1 : end] if line.strip())
            yield Command(first + start, lines[start][2:], shown)


def environment(home: Path, models: Path) -> dict[str, str]:
    """That of a newcomer: nothing of ours is set but where models are, and `ragcli` is on the path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAGCLI_", "XDG_", "COLUMNS"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    ours = {"HOME": str(home), "RAGCLI_MODELS": str(models), "PATH": path}
    return {**kept, **ours, "LC_ALL": "C.UTF-8", "TERM": "xterm"}


def on_terminal(command: str, folder: Path, home: Path, models: Path) -> tuple[int, list[list[str]]]:
    """Exit code of a command, and its lines on standard output and error, each a terminal of 80 columns."""
    terminals = [terminal() for _ in range(2)]
    (output, inner_output), (errors, inner_errors) = terminals
    process = subprocess.Popen(
        ["bash", "-c", command],
        stdin=inner_output,
        stdout=inner_output,
        stderr=inner_errors,
        cwd=folder,
        env=environment(home, models),
    )
    os.close(inner_output)
    os.close(inner_errors)
    received = received_from([output, errors])
    return process.wait(), [[_CONTROL.sub("", line).rstrip() for line in text.split("\n")] for text in received]


def terminal() -> tuple[int, int]:
    """Our end of a new terminal, and the command's."""
    import fcntl
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    return ours, theirs


def received_from(readers: list[int]) -> list[str]:
    """All that comes from each of the terminals until their other ends are closed."""
    received = dict.fromkeys(readers, b"")
    waiting = set(readers)
    while waiting:
        for reader in select.select(list(waiting), [], [])[0]:
            data = _read(reader)
            received[reader] += data
            if not data:
                waiting.discard(reader)
                os.close(reader)
    return [received[reader].decode() for reader in readers]


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 65536)
    except OSError:  # Linux: the other end of the terminal is closed
        return b""


def missing(shown: tuple[str, ...], streams: list[list[str]]) -> str | None:
    """The first shown line that comes in no stream after those before it; None when all do."""
    rest = [list(stream) for stream in streams]
    for line in shown:
        places = [[at for at, found in enumerate(stream) if shows(line, found)] for stream in rest]
        number = next((number for number, found in enumerate(places) if found), None)
        if line.strip() == "…":
            continue
        if number is None:
            return line
        del rest[number][: places[number][0] + 1]
    return None


def shows(line: str, found: str) -> bool:
    """Whether the README's line stands for a line that was found."""
    escaped = _DURATION.sub(r"[\\d.]+", re.escape(line)).replace("…", ".*")
    match = re.fullmatch(_ESCAPED_SHARE.sub(r"([01]\\.\\d{4})", escaped), found)
    if match is None:
        return False
    pairs = zip(_SHARE.findall(line), match.groups(), strict=True)
    return all(abs(float(shown) - float(real)) <= OFF for shown, real in pairs)


def told(streams: list[list[str]]) -> str:
    """What the command wrote, for the message of a failure."""
    return "\n".join("\n".join(stream) for stream in streams)


@pytest.mark.skipif(sys.platform == "win32", reason="the tour is one for a POSIX shell")
def test_the_tour_runs_word_for_word(tmp_path: Path, models: ModelPlace) -> None:
    folder, home = tmp_path / "tour", tmp_path / "home"
    home.mkdir()
    shutil.copytree(ROOT / "sample_corpus", folder / "sample_corpus")
    commands = list(tour())
    assert len(commands) > 20
    for command in commands:
        code, streams = on_terminal(command.text, folder, home, models.cache)
        place = f"README.md:{command.line}: {command.text}"
        assert code == 0, f"{place}: exit code {code}\n{told(streams)}"
        lost = missing(command.shown, streams)
        assert lost is None, f"{place}: not in the output: {lost!r}\n{told(streams)}"


PYTHON = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.spec("P11")
def test_the_functions_on_plain_lists_print_what_stands_beside_them() -> None:
    *_, example = PYTHON
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", example, re.MULTILINE)


def lines_of(example: str, folder: Path, models: ModelPlace) -> list[str]:
    """What the example prints, run in this folder."""
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=folder,
        env=environment(folder, models.cache),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.spec("C10")
def test_the_python_examples_run(tmp_path: Path, models: ModelPlace) -> None:
    taken_in, asked, _ = PYTHON
    shutil.copytree(ROOT / "sample_corpus", tmp_path / "sample_corpus")
    documents, *hits = lines_of(taken_in, tmp_path, models)
    assert re.fullmatch(r"60 documents, \d+ chunks", documents)
    assert "policies/travel-expenses-2025.md:" in hits[0]
    answer, checked = lines_of(asked, tmp_path, models)
    assert "Server refuses the certificate." in answer
    assert checked == "answered [(1, True)]"


@pytest.mark.parametrize(
    ("shown", "streams", "lost"),
    [
        (("a", "c"), [["a", "b", "c"], []], None),
        (("c", "a"), [["a", "b", "c"], []], "a"),
        (("c", "x", "d"), [["a", "c", "d"], ["w", "x"]], None),
        (("x … z", "…", "1 hit (4.7 ms)"), [["x y z", "w", "1 hit (12.0 ms)"]], None),
        (("1 hit (4.7 ms)",), [["2 hits (4.7 ms)"]], "1 hit (4.7 ms)"),
        (("cosine 0.5000 = 1.0000 …",), [["cosine 0.5015 = 0.9985 x"]], None),
        (("cosine 0.5000",), [["cosine 0.5031"]], "cosine 0.5000"),
        (("bm25 9.1700",), [["bm25 9.1701"]], "bm25 9.1700"),
    ],
)
def test_shown_lines_are_looked_for_in_order(
    shown: tuple[str, ...], streams: list[list[str]], lost: str | None
) -> None:
    assert missing(shown, streams) == lost


def section(title: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    heading = re.search(rf"^(#+) {re.escape(title)}$", README, re.MULTILINE)
    assert heading, f"README.md has no section {title}"
    end = re.search(rf"^#{{1,{len(heading[1])}}} ", README[heading.end() :], re.MULTILINE)
    return README[heading.end() : heading.end() + end.start() if end else None]


def documented(text: str) -> set[str]:
    """The options written as code, `--top-k N` as `--top-k`."""
    spans = re.findall(r"`([^`\n]+)`", text)
    return {word for span in spans for word in re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", span)}


def options_of(command: Any, context: Any) -> set[str]:
    """Every spelling of every option that the help shows."""
    found = [param for param in command.get_params(context) if param.param_type_name == "option"]
    return {name for param in found if not param.hidden for name in (*param.opts, *param.secondary_opts)}


def command_line() -> dict[str, set[str]]:
    """Each command with its options, those of its own commands among them; "" for those before a command."""
    group = build()
    with group.make_context("ragcli", [], resilient_parsing=True) as context:
        found = {"": options_of(group, context)}
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            found[name] = options_of(command, context).union(*(options_of(one, context) for one in within(command)))
    return found


def within(command: Any) -> list[Any]:
    """The commands of a command, such as `pull` of `models`."""
    return list(getattr(command, "commands", {}).values())


@pytest.mark.parametrize("name", list(command_line()))
def test_every_command_and_option_is_documented(name: str) -> None:
    everywhere = documented(section("Global options"))
    here = documented(section(f"ragcli {name}")) if name else set()
    options = command_line()[name]
    assert options <= here | everywhere
    assert here <= options  # and none that there is not
    if not name:
        assert everywhere == options


def test_the_list_of_commands_is_whole() -> None:
    assert set(re.findall(r"^### ragcli (\w+)$", README, re.MULTILINE)) == set(command_line()) - {""}


def test_the_commands_of_a_command_are_documented() -> None:
    group = build()
    with group.make_context("ragcli", [], resilient_parsing=True) as context:
        names = {one.name for one in within(group.get_command(context, "models"))}
    assert names
    assert set(re.findall(r"`ragcli models (\w+)", section("ragcli models"))) == names


@pytest.mark.spec("M1")
def test_the_catalogue_is_that_of_the_program() -> None:
    rows = re.findall(r"^\| `([\w.-]+)` \| (\w+) \| ([\d.]+) \| (\S+) \|", section("Models"), re.MULTILINE)
    assert rows == [(one.name, one.kind, f"{one.size / 1e6:.1f}", one.licence) for one in catalogue.MODELS]


def test_documented_keys_exist() -> None:
    sections = "|".join(Settings().__struct_fields__)
    written = set(re.findall(rf"`((?:{sections})\.[a-z_0-9]+)\b", README))
    assert written
    assert written <= set(config.setting_keys())


def test_every_variable_of_ours_is_documented() -> None:
    written = set(re.findall(r"`(RAGCLI_[A-Z]+)(?=[`=])", section("Environment variables")))
    assert written == set(config.PLAIN_VARIABLES)


def test_every_preset_is_documented() -> None:
    assert set(config.preset_names()) <= set(re.findall(r"^\| `([a-z-]+)` \|", section("Configuration"), re.MULTILINE))


def exit_codes(error: type[errors.RagcliError]) -> set[int]:
    """The codes of an error and all that are derived from it."""
    return {error.exit_code}.union(*(exit_codes(child) for child in error.__subclasses__()))


def test_every_exit_code_is_documented() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)}
    assert codes == {0, 130, 143} | exit_codes(errors.RagcliError)


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("title", "properties"),
    [
        ("A result", SCHEMA["result"]["properties"]),
        ("A hit", SCHEMA["hit"]["properties"]),
        ("A dropped hit", SCHEMA["result"]["properties"]["dropped"]["items"]["properties"]),
        ("A stage", SCHEMA["result"]["properties"]["stages"]["items"]["properties"]),
        ("A query of a batch that failed", SCHEMA["failure"]["properties"]),
    ],
)
def test_every_field_of_the_contract_is_documented(title: str, properties: dict[str, Any]) -> None:
    text = re.search(rf"^{re.escape(title)}:(.*?)(?:\n\n|\Z)", section("The JSON contract"), re.DOTALL | re.MULTILINE)
    assert text, title
    fields = re.findall(r"`(\w+)` \(", text[1])
    assert sorted(fields) == sorted(properties)


@pytest.mark.spec("C11")
def test_every_field_of_an_answer_is_documented() -> None:
    text = re.search(r"^An answer \((.*?)(?:\n\n|\Z)", section("The JSON contract"), re.DOTALL | re.MULTILINE)
    assert text
    named = set(re.findall(r"`(\w+)`", text[1]))
    parts = [OF_ASK[name]["properties"] for name in ("answer", "citation", "statement", "failure")]
    inner = [OF_ASK["answer"]["properties"][name]["properties"] for name in ("usage", "timings", "retrieval")]
    assert {field for properties in (*parts, *inner) for field in properties} <= named


def test_every_ending_that_is_read_is_documented() -> None:
    endings = set(re.findall(r"`\.(\w+)`", section("What is read")))
    assert endings == set(formats.EXTENSIONS) | set(formats.UNBUILT)


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", README)) <= targets
