"""C14: a corpus of one document, or of none, crashed or gave scores that are no numbers."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I32")
def test_one_document(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": "the gauge\n"})
    shell("ingest", "d")
    (hit,) = shell.hits("gauge")
    assert hit["score"] == pytest.approx(log(1 + 0.5 / 1.5))  # N = df = 1, length as the average: the tf part is 1
    assert shell.hits("pump") == []


@pytest.mark.spec("I32")
def test_no_document(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": "the gauge\n"})
    shell("ingest", "d")
    assert shell("ingest", "--delete", "a.md").code == 0
    asked = shell("query", "gauge", "--format", "json")
    assert (asked.code, asked.json()["hits"]) == (0, [])
    assert "note: the index holds no chunks" in asked.err
    assert shell("ingest", "d").code == 0
    assert len(shell.hits("gauge")) == 1
