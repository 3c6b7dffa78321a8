"""A13: an unknown flag was silently ignored. Globs are paths here, or `--include`: that is what is suggested."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.cli import main


@pytest.mark.spec("C7", "C9")
@pytest.mark.parametrize(
    ("flag", "meant"),
    [("--globb", "--include"), ("--glob", "--include"), ("--includ", "--include"), ("--tags", "--tag")],
)
def test_an_unknown_flag_is_refused_with_the_one_that_is_meant(
    flag: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("text", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["ingest", "./d", flag, "*.md"]) == 2
    assert f"no such option: {flag}; did you mean {meant}?" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["d"]
