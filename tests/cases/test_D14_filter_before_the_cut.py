"""D14: a filter that came after the cut to k left nothing. The best that the filter admits come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("R9")
def test_three_of_a_small_folder_beside_five_hundred_better_ones(shell: Shell, tmp_path: Path) -> None:
    better = {f"big/{n:03}.md": "gauge gauge gauge\n" for n in range(500)}
    wanted = {f"small/{n}.md": "a gauge among a good many other words of no interest\n" for n in range(3)}
    indexes.write(tmp_path / "d", {**better, **wanted})
    shell("ingest", "d")
    assert all(hit["document_id"].startswith("big/") for hit in shell.hits("gauge"))
    asked = shell("query", "gauge", "--filter", "path=small/*", "--format", "json").json()
    assert [hit["document_id"] for hit in asked["hits"]] == sorted(wanted)
    assert {hit["arms"]["bm25"]["rank"] for hit in asked["hits"]} == {1, 2, 3}
    assert asked["dropped"] == []
