"""C04: a Japanese clause was one term, and its parts were not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I33")
@pytest.mark.parametrize("query", ["国際標準化", "標準", "動向", "国際標準化に関する動向"])
def test_a_part_of_the_clause_is_found(shell: Shell, tmp_path: Path, query: str) -> None:
    indexes.write(tmp_path / "d", {"a.md": "国際標準化に関する動向\n", "b.md": "その他のこと\n"})
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits(query)] == ["a.md"]
