"""G08: a console in cp1252 made every query with other characters crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def ragcli(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}
    return subprocess.run(
        [sys.executable, "-m", "ragcli", *arguments], cwd=cwd, env=environment, capture_output=True, check=False
    )


@pytest.mark.spec("C2", "C13")
def test_no_encode_error_whatever_the_console_can_show(tmp_path: Path) -> None:
    (tmp_path / "故乡.md").write_text("故乡的云 café", encoding="utf-8")
    assert ragcli(tmp_path, "ingest", "故乡.md", "-v").returncode == 0
    table = ragcli(tmp_path, "query", "故乡")
    assert table.returncode == 0
    assert b"\\u6545\\u4e61" in table.stdout
    assert b"caf\xe9" in table.stdout  # what the console has, it gets in its own encoding
    for output in ("json", "jsonl", "csv", "tsv", "md", "paths", "trec"):
        done = ragcli(tmp_path, "query", "故乡", "--format", output)
        assert done.returncode == 0, done.stderr
        assert "故乡" in done.stdout.decode("utf-8")
    assert json.loads(ragcli(tmp_path, "query", "故乡", "--json").stdout)["hits"][0]["text"] == "故乡的云 café"
    assert ragcli(tmp_path, "query", "没有").returncode == 0
