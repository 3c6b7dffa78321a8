"""B17: what deletes leave behind is reported, and the room is given back by the ingest that made it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.mark.spec("I34", "A11")
def test_the_file_shrinks_and_nothing_is_orphaned(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "docs", {f"{n:03}.txt": f"number{n} " * 300 for n in range(200)})
    assert shell("ingest", "docs").code == 0
    index = indexes.index_of(tmp_path)
    before = os.stat(index).st_size

    for path in sorted(docs.iterdir())[10:]:
        path.unlink()
    assert shell("ingest", "docs", "--prune").code == 0

    assert os.stat(index).st_size < before / 3
    tables = ("chunks", "vectors", "text_blocks", "documents", "sources")
    counts = {table: indexes.rows(index, f"SELECT count(*) FROM {table}")[0][0] for table in tables}
    assert counts["documents"] == counts["sources"] == 10
    assert counts["vectors"] == counts["chunks"]
    assert indexes.rows(index, "SELECT count(*) FROM spare_vectors") == [(0,)]
    report = shell("inspect", "--json").json()
    assert report["bytes"] == os.stat(index).st_size
    assert report["free"] <= 0.1 * report["bytes"]
    assert shell("inspect", "--check").code == 0
