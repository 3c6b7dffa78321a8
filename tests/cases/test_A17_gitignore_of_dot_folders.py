"""A17: `.*/` in .gitignore ignored the root itself, and nothing was indexed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.options import IngestSettings
from ragcli.read.walk import walk


@pytest.mark.spec("I2")
@pytest.mark.parametrize("hidden", [False, True])
def test_the_root_is_never_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: bool) -> None:
    (tmp_path / ".gitignore").write_text(".*/\n")
    (tmp_path / "x.md").write_text("x")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/y.md").write_text("y")
    monkeypatch.chdir(tmp_path)
    for root in (".", str(tmp_path), "./"):
        sources = walk([root], IngestSettings(hidden=hidden), report=lambda problem: None)
        assert [source.relative for source in sources if source.relative != ".gitignore"] == ["x.md"]
