"""A46: a corpus of empty texts raised. It has no chunks, and a query of it finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I5")
def test_empty_files(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": "", "b.txt": "", "c.html": "", "d.md": "\n"})
    told = shell("ingest", "d", "--json")
    assert told.code in {0, 4}
    assert told.json()["chunks"] == 0
    asked = shell("query", "anything", "--format", "json")
    assert (asked.code, asked.json()["hits"]) == (0, [])
    assert indexes.faults(indexes.index_of(tmp_path)) == []
    assert shell("ingest", "d").code == told.code


def test_an_empty_folder(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    told = shell("ingest", "d")
    assert (told.code, "0 chunks" in told.err) == (0, True)
    asked = shell("query", "anything", "--format", "json")
    assert (asked.code, asked.json()["hits"]) == (0, [])
