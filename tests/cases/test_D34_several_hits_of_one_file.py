"""D34: one hit a file, however long the file. Several chunks of it come back; --per-document limits them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("R1")
def test_ten_chunks_of_a_long_file(shell: Shell, tmp_path: Path) -> None:
    section = "The gauge of station {n} is read by hand. " + "Nothing else is known of it, and nobody asks. " * 30
    long = "\n\n".join(section.format(n=n) for n in range(1200))
    assert len(long) > 1_700_000
    indexes.write(tmp_path / "docs", {"long.md": long, "short.md": "A gauge.\n"})
    assert shell("ingest", "docs").code == 0
    hits = shell("query", "gauge station", "--top-k", "10", "--json").json()["hits"]
    assert [hit["document_id"] for hit in hits] == ["long.md"] * 10
    assert len({hit["chunk_index"] for hit in hits}) == 10
    limited = shell("query", "gauge station", "--top-k", "10", "--per-document", "2", "--json").json()
    assert [hit["document_id"] for hit in limited["hits"]].count("long.md") == 2
    assert {drop["stage"] for drop in limited["dropped"]} == {"per_document"}
