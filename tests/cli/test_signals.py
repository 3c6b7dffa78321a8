"""Ctrl-C and SIGTERM end the process in order, whenever they come: one line, the code shells know, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.cli import INTERRUPTED, TERMINATED
from tests import indexes

STARTED_SECONDS = 20.0


def start(folder: Path) -> subprocess.Popen[str]:
    """An ingest of many files, with workers, in a session of its own."""
    command = [sys.executable, "-m", "ragcli", "ingest", "c"]
    environment = os.environ | {"RAGCLI_INGEST__WORKERS": "4", "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for_workers(process: subprocess.Popen[str]) -> None:
    """Until a first child is there: the others are being started, and none has come to our code."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + STARTED_SECONDS
    while process.poll() is None and not children.read_text().split() and time.monotonic() < end:
        time.sleep(0.002)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    text = " ".join(f"word{n}" for n in range(1500))
    indexes.write(tmp_path / "c", {f"{n}.txt": f"{n} {text}" for n in range(900)})
    return tmp_path


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
@pytest.mark.spec("C9")
@pytest.mark.parametrize("after", [0.0, 0.08, 0.2])
@pytest.mark.parametrize(
    ("send", "number", "code", "word"),
    [
        (os.killpg, signal.SIGINT, INTERRUPTED, "interrupted"),
        (os.kill, signal.SIGTERM, TERMINATED, "terminated"),
    ],
)
def test_a_signal_while_workers_start_is_one_line(
    many: Path, send: Callable[[int, int], None], number: int, code: int, word: str, after: float
) -> None:
    process = start(many)
    wait_for_workers(process)
    time.sleep(after)
    send(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, f"error: {word}\n")


@pytest.mark.spec("C9")
def test_ctrl_c_after_the_work_is_done_changes_nothing(tmp_path: Path) -> None:
    script = (
        "import atexit, os, signal, sys\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "sys.argv = ['ragcli', '--version']\n"
        "from ragcli.__main__ import run\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert (done.returncode, done.stderr) == (0, "")
