"""D04: the same text with other metadata overwrote the earlier one: texts were taken for identities."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.fuse import Arm, fuse
from ragcli.options import FusionMethod, FusionSettings
from tests import indexes
from tests.commands import Shell

YEARS = {"a": 2024, "b": 2026}
PARAGRAPH = "The hotel limit in Hamburg is 140 euros a night.\n"


@pytest.mark.spec("R5", "R6")
@pytest.mark.parametrize("method", ["relative", "zscore", "rrf"])
def test_two_chunks_with_equal_scores_both_stay_and_go_by_name(method: FusionMethod) -> None:
    names = {8: ("a.md", 0), 5: ("b.md", 0)}
    arms = [Arm("bm25", {8: 1, 5: 2}, {5: 3.0, 8: 3.0}), Arm("dense", {8: 1, 5: 2}, {5: 0.7, 8: 0.7})]
    assert [names[one.chunk][0] for one in fuse(arms, FusionSettings(method=method), names)] == ["a.md", "b.md"]


@pytest.mark.spec("I10")
def test_both_citations_are_kept_each_with_its_own_metadata(shell: Shell, tmp_path: Path) -> None:
    files = {f"{name}.md": f"---\nyear: {year}\n---\n{PARAGRAPH}" for name, year in YEARS.items()}
    indexes.write(tmp_path / "d", files)
    shell("ingest", "d")
    hits = shell("query", "hotel limit", "--mode", "keyword", "--format", "json").json()["hits"]
    assert [(hit["document_id"], hit["metadata"]["year"]) for hit in hits] == [("a.md", 2024), ("b.md", 2026)]
    assert {hit["text"].strip() for hit in hits} == {PARAGRAPH.strip()}
