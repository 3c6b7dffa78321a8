"""G04: a progress bar flooded logs that are no terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spec("C5")
def test_a_log_holds_no_carriage_return_and_few_lines(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}.md").write_text(f"text {number}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ragcli", "ingest", "d"], capture_output=True, cwd=tmp_path, check=True
    )
    assert b"\r" not in done.stderr
    assert b"\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == b""
