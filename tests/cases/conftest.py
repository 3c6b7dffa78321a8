"""What the cases share: the command line in the test's own folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import indexes
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


@pytest.fixture
def oaks(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    """An index of three texts, of which two hold "oak": one nothing else, one five words more."""
    texts = {"a": "oak", "b": "oak elm ash fir yew bay", "c": "stone sand clay"}
    lines = (f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in texts.items())
    indexes.write(tmp_path, {"records.jsonl": "".join(lines)})
    assert shell("ingest", "records.jsonl").code == 0
