"""C01: a Chinese query found nothing. Han runs become overlapping pairs, so each part of a run is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I33")
@pytest.mark.parametrize("query", ["中文合約", "轉換", "體驗課問題", "中文合約轉換體驗課問題"])
def test_every_part_of_the_run_is_found(shell: Shell, tmp_path: Path, query: str) -> None:
    indexes.write(tmp_path / "d", {"a.md": "中文合約轉換體驗課問題\n", "b.md": "其他內容\n"})
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits(query)] == ["a.md"]
