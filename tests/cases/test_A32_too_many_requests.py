"""A32: 429 with Retry-After is waited for; 413 makes the batch smaller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, error


@pytest.mark.spec("M5", "M11")
def test_it_waits_as_it_is_told_and_succeeds(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak", "b.txt": "an elm"})
    service.script(error(429, "slow down", Retry_After="1"), error(429, "slow down", Retry_After="1"))
    assert shell("ingest", "docs").code == 0
    first, second, third = [request.at for request in service.requests[:3]]
    assert second - first >= 1.0
    assert third - second >= 1.0
    assert "2 of 2 chunks" in shell("inspect").out
