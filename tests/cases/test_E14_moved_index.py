"""E14: an index moved away from its sources works; its hits say that the files are not there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I30", "C12")
def test_a_copy_without_its_sources(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexes.write(tmp_path / "d", {"a.md": "alpha\n"})
    shell("ingest", "d")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(tmp_path / ".ragcli", elsewhere / ".ragcli")
    monkeypatch.chdir(elsewhere)
    (hit,) = shell.hits("alpha")
    assert (hit["document_id"], hit["text"], hit["stale"]) == ("a.md", "alpha", "missing")
    assert hit["path"] == str(elsewhere / "d" / "a.md")
    assert re.match(r"1\. d/a\.md:1  bm25 \d\.\d+  \[missing since ingest\]\n", shell("query", "alpha").out)
