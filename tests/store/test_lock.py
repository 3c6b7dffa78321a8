"""One writer at a time, and whoever waits is told for whom (spec I35)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragcli.errors import IndexLocked, RagcliError
from ragcli.store.sqlite import lock
from tests import indexes

HOLD = """
import sys, time
from ragcli.store.sqlite import lock
with lock.writing(sys.argv[1]):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def hold(index: Path, seconds: float) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(index), str(seconds)], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.spec("I35")
def test_the_second_writer_is_told_who_holds_it(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    process = hold(index, 60)
    try:
        waited: list[str] = []
        with pytest.raises(IndexLocked) as caught, lock.writing(index, wait=0.2, on_wait=waited.append):
            pass
        assert re.search(rf"process {process.pid} on \S+ since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d", caught.value.message)
        assert len(waited) == 1
        assert caught.value.exit_code == 1
    finally:
        process.kill()
        process.communicate()


@pytest.mark.spec("I35")
def test_the_second_writer_waits(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    process = hold(index, 0.5)
    began = time.monotonic()
    with lock.writing(index, wait=20):
        assert time.monotonic() - began > 0.2
        holder = lock.holder(index)
        assert holder is not None
        assert holder.pid == os.getpid()
    process.communicate()


@pytest.mark.spec("I35")
def test_a_killed_holder_leaves_nothing_to_break(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    process = hold(index, 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert lock.lock_path(index).exists()
    with lock.writing(index, wait=0):
        pass


def test_readers_need_no_lock(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    indexes.take_in(index, indexes.write(tmp_path / "docs", {"a.txt": "hello"}))
    process = hold(index, 60)
    try:
        assert indexes.found(index, "hello") == {"a.txt"}
    finally:
        process.kill()
        process.communicate()


@pytest.mark.spec("I35")
def test_a_system_without_flock_refuses_to_write_and_still_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "i.db"
    indexes.take_in(index, indexes.write(tmp_path / "docs", {"a.txt": "hello"}))
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows: importing it is an ImportError
    with pytest.raises(RagcliError, match="no flock") as caught, lock.writing(index):
        pass
    assert "WSL" in caught.value.hint
    assert indexes.found(index, "hello") == {"a.txt"}


def test_help_and_queries_need_no_flock(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    indexes.take_in(index, indexes.write(tmp_path / "docs", {"a.txt": "hello"}))
    for arguments in (["--help"], ["query", "hello", "--fail-empty", "--index", str(index)]):
        script = f"import sys; sys.modules['fcntl'] = None; from ragcli.cli import main; sys.exit(main({arguments!r}))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
