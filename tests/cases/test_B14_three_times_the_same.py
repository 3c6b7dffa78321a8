"""B14: running again made the database grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import crash, indexes

TABLES = ("sources", "documents", "chunks", "text_blocks", "metadata", "terms", "posting_lists", "segments")


@pytest.mark.spec("I34")
def test_rows_and_size_stay(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    crash.make_corpus(tmp_path / "d", 14)
    states = []
    for _ in range(3):
        indexes.take_in(index, tmp_path / "d")
        counts = [indexes.rows(index, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]
        states.append((counts, index.stat().st_size))
    assert states[0][0] == states[1][0] == states[2][0]
    (page,) = indexes.rows(index, "PRAGMA page_size")[0]
    assert max(size for _, size in states) - min(size for _, size in states) <= page
