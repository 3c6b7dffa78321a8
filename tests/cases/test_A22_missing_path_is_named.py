"""A22: a missing file gave "No such file or directory" without its name, a folder "Is a directory"."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.errors import UsageError
from ragcli.options import IngestSettings
from ragcli.read.walk import walk


@pytest.mark.spec("I1")
def test_the_message_holds_the_path_and_folders_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adir").mkdir()
    (tmp_path / "adir/a.md").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        walk(["adir", "nosuch.md"], IngestSettings(), report=lambda problem: None)
    assert "nosuch.md" in caught.value.message
    assert caught.value.exit_code == 2
    assert [source.relative for source in walk(["adir"], IngestSettings(), report=lambda problem: None)] == ["a.md"]
