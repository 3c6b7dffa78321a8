"""G02: logs and progress on standard output broke `jq`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.spec("C2", "C11")
def test_standard_output_of_every_command_parses(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("torque", encoding="utf-8")
    (tmp_path / "d" / "latin.txt").write_bytes("Größe und Maß der Prüfung, für die Wärme\n".encode("cp1252") * 3)
    (tmp_path / "d" / "bad.pdf").write_bytes(b"%PDF-1.4\nno")
    commands = [
        ["ingest", "d", "-v", "--json"],
        ["ingest", "d", "-v", "--json", "--dry-run"],
        ["query", "torque", "--json"],
        ["query", "torque", "-v", "--json"],
        ["query", "absent", "-vv", "--explain", "--json"],
        ["inspect", "--json", "-v"],
        ["inspect", "--config", "--json"],
        ["inspect", "--document", "a.md", "--json"],
        ["inspect", "--chunk", "a.md#0", "--json"],
        ["inspect", "--terms", "torque", "--json"],
        ["inspect", "--check", "--json"],
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGCLI_")}
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "ragcli", *command], capture_output=True, cwd=tmp_path, env=environment, check=False
        )
        assert done.returncode in {0, 4}, (command, done.stderr)
        assert isinstance(json.loads(done.stdout), dict), command
