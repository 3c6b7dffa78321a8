"""A11: adding a collection with no path silently indexed the working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.cli import main


@pytest.mark.spec("C9", "I1")
def test_no_path_is_a_usage_error_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.md").write_text("text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for arguments in (["ingest"], ["ingest", "--prune"], ["ingest", "--dry-run"], ["ingest", "--tag", "a=b"]):
        assert main(arguments) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: no path: nothing to read\nhint: ")
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]
