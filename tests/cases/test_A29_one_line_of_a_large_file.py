"""A29: a large file of which the last line changed is embedded where it changed, not as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Shell
from tests.services import EmbeddingService

LINES = 26_000  # of some 200 characters: 5 MB


@pytest.mark.spec("I34")
def test_only_the_chunks_that_changed_are_embedded(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    lines = [f"entry {number}: " + f"word{number} " * 22 for number in range(LINES)]
    file = tmp_path / "log.txt"
    file.write_text("\n".join(lines))
    assert file.stat().st_size > 5_000_000
    first = shell("ingest", "log.txt", "--json").json()
    assert (first["embedded"], first["reused"], first["unembedded"]) == (first["chunks"], 0, 0)
    service.requests.clear()

    file.write_text("\n".join([*lines[:-1], "the last entry is another one now"]))
    second = shell("ingest", "log.txt", "--json").json()

    assert second["changed"] == 1
    assert 1 <= second["embedded"] <= 2
    assert second["reused"] == second["chunks"] - second["embedded"]
    assert len(service.texts) == second["embedded"]
    assert "the last entry is another one now" in service.texts[-1]
