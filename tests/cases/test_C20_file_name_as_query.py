"""C20: the name of a file as the query found nothing. The file name is indexed with every chunk of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I24")
@pytest.mark.parametrize("query", ["2026-03-16.md", "2026-03-16", "2026 03 16"])
def test_the_file_of_that_name_is_first(shell: Shell, tmp_path: Path, query: str) -> None:
    days = {f"2026-03-{day}.md": "a walk and a talk\n" for day in (14, 15, 16, 17)}
    indexes.write(tmp_path / "d", {**days, "other.md": "a walk and a talk\n"})
    shell("ingest", "d")
    first, second = shell.hits(query)[:2]
    assert first["document_id"] == "2026-03-16.md"
    assert first["score"] > second["score"]
    assert "2026" not in first["text"]
