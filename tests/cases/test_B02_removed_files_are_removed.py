"""B02: an update never noticed removed files. With --prune all that belonged to them goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I34")
def test_three_of_five_removed(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", {f"{n}.md": f"---\nn: {n}\n---\nword{n} shared\n" for n in range(5)})
    shell("ingest", "d")
    for n in range(3):
        (docs / f"{n}.md").unlink()
    told = shell("ingest", "d")
    assert "3 files are gone" in told.err
    told = shell("ingest", "d", "--prune", "--json")
    assert told.json()["removed"] == 3
    index = indexes.index_of(tmp_path)
    counts = [indexes.rows(index, f"SELECT count(*) FROM {table}")[0][0] for table in (
        "sources", "documents", "chunks", "text_blocks", "metadata",
    )]  # fmt: skip
    assert counts == [2, 2, 2, 2, 2]
    assert indexes.rows(index, "SELECT sum(df) FROM terms WHERE term = 'shared'") == [(2,)]
    assert indexes.rows(index, "SELECT term FROM terms WHERE term IN ('word0', 'word1', 'word2')") == []
    assert indexes.faults(index) == []
