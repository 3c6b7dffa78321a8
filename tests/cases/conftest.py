"""What the cases share: the command line in the test's own folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs `ragcli` with the test's folder as the working folder, so that the index is made there."""
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingService]:
    """An embeddings service on 127.0.0.1 that the commands of this test use."""
    with EmbeddingService() as running:
        monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:toy")
        for name, value in running.environ.items():
            monkeypatch.setenv(name, value)
        yield running
