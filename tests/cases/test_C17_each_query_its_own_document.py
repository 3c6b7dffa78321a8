"""C17: every query returned the same documents. Three documents, three queries, three first hits; also afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell

TEXTS = {"a.md": "anchors and chains\n", "b.md": "bread and butter\n", "c.md": "copper wire\n"}
QUERIES = {"anchors": "a.md", "butter": "b.md", "copper": "c.md"}


@pytest.mark.spec("I31")
def test_each_query_finds_its_own_document(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", TEXTS)
    shell("ingest", "d")
    assert {query: [hit["document_id"] for hit in shell.hits(query)] for query in QUERIES} == {
        query: [name] for query, name in QUERIES.items()
    }
    for query, name in QUERIES.items():  # from the file alone, in a process that has not built it
        command = [sys.executable, "-m", "ragcli", "query", query, "--json"]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        assert [hit["document_id"] for hit in json.loads(told.stdout)["hits"]] == [name]
