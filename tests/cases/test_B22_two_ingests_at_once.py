"""B22: two ingests of one folder at once made duplicates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import crash, indexes


@pytest.mark.spec("I35")
def test_no_duplicates(tmp_path: Path) -> None:
    crash.make_corpus(tmp_path / "d", 22)
    command = [sys.executable, "-m", "ragcli", "--index", str(tmp_path / "i.db"), "ingest", str(tmp_path / "d")]
    root = Path(__file__).resolve().parents[2]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=root) for _ in range(2)]
    complaints = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], complaints
    indexes.take_in(tmp_path / "once.db", tmp_path / "d")
    indexes.same(tmp_path / "i.db", tmp_path / "once.db", ["oak7", "note"])
    assert indexes.faults(tmp_path / "i.db") == []
