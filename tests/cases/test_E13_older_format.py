"""E13: an index of an older ragcli is named as such, and one command brings it up to date with all it holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragcli.store.sqlite import schema
from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService


def made_old(index: Path) -> None:
    """Take away what versions 2 and 3 brought."""
    with closing(sqlite3.connect(index)) as db:
        db.executescript(
            "DROP TABLE vectors; DROP TABLE spare_vectors; DROP TABLE unembedded;"
            "DROP TABLE parents; DROP TABLE unparented; DROP TABLE outlines;"
            "DELETE FROM meta WHERE key LIKE 'vector%' OR key IN ('embedder', 'outlines_from');"
            "PRAGMA user_version = 1;"
        )


@pytest.mark.spec("I37", "C9")
def test_it_is_refused_migrated_by_ingest_and_gets_vectors_when_asked(
    shell: Shell, service: EmbeddingService, tmp_path: Path
) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak", "b.txt": "an elm"})
    assert shell("ingest", "docs", "--no-embed").code == 0
    made_old(indexes.index_of(tmp_path))

    refused = shell("query", "oak")
    assert refused.code == 3
    assert f"was made by an older ragcli (format 1; this one reads {schema.VERSION})" in refused.err
    assert "ragcli ingest" in refused.err

    assert shell("ingest", "docs", "--no-embed", "--json").json()["unchanged"] == 2
    assert shell("query", "oak", "--mode", "keyword", "--json").json()["hits"][0]["document_id"] == "a.txt"
    assert shell("inspect", "--check").code == 0

    assert "2 embedded" in shell("ingest", "--re-embed").err
    assert shell("query", "oak", "--json").json()["mode"] == "hybrid"
    assert shell("inspect", "--check").code == 0
