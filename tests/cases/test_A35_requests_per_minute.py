"""A35: `embedding.requests_per_minute` holds for an ingest."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.mark.spec("M5")
def test_requests_come_no_faster_than_the_settings_allow(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_EMBEDDING__REQUESTS_PER_MINUTE", "600")
    monkeypatch.setenv("RAGCLI_EMBEDDING__BATCH_TEXTS", "1")
    indexes.write(tmp_path / "docs", {f"{number}.txt": f"text {number}" for number in range(6)})
    assert shell("ingest", "docs").code == 0
    times = [request.at for request in service.requests]
    assert len(times) >= 6
    assert all(later - earlier >= 0.09 for earlier, later in pairwise(times))
