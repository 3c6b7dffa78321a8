"""A44: a service that never answers costs its time-out for each try, and then it is named; nothing waits for ever."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, Reply, embeddings


@pytest.mark.spec("M5", "M11", "C9")
def test_a_hanging_service_is_named_and_the_next_ingest_goes_on(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = indexes.write(tmp_path / "docs", {"a.txt": "an oak"})
    assert shell("ingest", "docs").code == 0
    monkeypatch.setenv("RAGCLI_EMBEDDING__TIMEOUT_SECONDS", "0.2")
    monkeypatch.setenv("RAGCLI_EMBEDDING__RETRIES", "1")
    service.rule = lambda _: Reply(delay=60.0)
    indexes.write(docs, {"b.txt": "an elm"})
    service.requests.clear()
    started = perf_counter()
    hung = shell("ingest", "docs")
    assert perf_counter() - started < 30.0
    assert hung.code == 4
    assert "1 chunk has no vector yet" in hung.err
    assert service.address in hung.err
    assert len(service.requests) >= 2
    service.rule = embeddings
    assert shell("ingest", "docs").code == 0
    assert "2 of 2 chunks" in shell("inspect").out
