"""C13: asking for more hits than there are chunks raised an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("R1")
@pytest.mark.parametrize("top_k", ["1", "20", "1000000"])
def test_what_there_is_is_returned(shell: Shell, tmp_path: Path, top_k: str) -> None:
    indexes.write(tmp_path / "d", {"a.md": "the only gauge\n"})
    shell("ingest", "d")
    asked = shell("query", "gauge", "--top-k", top_k, "--format", "json")
    assert (asked.code, [hit["document_id"] for hit in asked.json()["hits"]]) == (0, ["a.md"])
