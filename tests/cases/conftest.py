"""What the cases share: the command line in the test's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs `ragcli` with the test's folder as the working folder, so that the index is made there."""
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)
