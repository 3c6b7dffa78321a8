"""G23: markup, emoji codes, escape sequences and bidirectional controls of a document took over the table."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

import pytest

from ragcli.cli import main

TEXT = "torque [bold]x[/] [/] :smile: \x1b[31mred\x1b[0m \u202eevil\u202c zero\u200bwidth\ttab \x9b5m"


@pytest.mark.spec("C13", "C2")
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_is_shown_hostile_text_literally(columns: int, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(TEXT, encoding="utf-8")
    index = str(tmp_path / "i.db")
    assert main(["ingest", str(tmp_path / "a.md"), "--index", index, "-q"]) == 0
    shown = on_a_terminal(["query", "torque", "--index", index], columns, tmp_path)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    joined = re.sub(r"\s|bm25", "", plain)  # the kind of score stands beside the second line of the passage
    for literal in ("[bold]x[/][/]:smile:\\x1b[31mred\\x1b[0m", "<U+202E>evil<U+202C>", "zero<U+200B>width", "\\x9b5m"):
        assert literal in joined
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u202c\u200b]", plain)
    assert max(map(len, plain.splitlines())) <= columns
    assert re.search(r"\x1b\[[0-9;]+mtorque\x1b\[0m", shown)


def on_a_terminal(arguments: list[str], columns: int, folder: Path) -> str:
    """What a fresh ragcli writes on a terminal of so many columns."""
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "RAGCLI_INDEX"}}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "50", "PYTHONIOENCODING": "utf-8"}
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, "-m", "ragcli", *arguments], environment)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0, written.decode()
    return written.decode()
