"""A19: files that nobody wants were indexed by default, and a list of what to ignore did not last.

The defaults are stated by `ingest --dry-run`; a `.ragignore` in the folder is the list that lasts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell

FILES: dict[str, str | bytes] = {
    ".ragignore": "*.log\n",
    "build.log": "compiled\n",
    "package.json": '{"name": "gauge"}',
    "a.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(40),
    "notes.md": "read the gauge\n",
}


@pytest.mark.spec("I2")
def test_a_dry_run_states_the_defaults(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", FILES)
    told = shell("ingest", "d", "--dry-run")
    assert "rules: hidden files are skipped; obeyed: .gitignore and .ragignore" in told.err
    assert "rules: skipped too: binaries, circular links, devices, files over 67,108,864 bytes" in told.err
    assert f"skipped    {docs / 'build.log'}  (an ignore file leaves it out)" in told.out.splitlines()
    assert f"new        {docs / 'package.json'}" in told.out.splitlines()


@pytest.mark.spec("I2")
def test_the_list_of_what_to_ignore_lasts(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", FILES)
    for _ in range(2):
        report = shell("ingest", "d", "--json").json()
        skipped = {Path(problem["path"]).name: problem["kind"] for problem in report["skipped"]}
        assert skipped == {".ragignore": "hidden", "build.log": "ignored", "a.png": "binary"}
        assert indexes.ids(indexes.index_of(tmp_path)) == ["notes.md", "package.json"]
    assert shell.hits("compiled") == []
