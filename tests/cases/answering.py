"""What the cases of answers share: a folder about trees, and a scripted service of chat completions that `ask` uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import KEY
from tests.streams import ChatServer, Script

TREES = {
    "oak.md": "An oak grows thirty metres tall. Its acorns feed jays.\n",
    "elm.md": "An elm dies of a fungus that beetles carry. Its wood resists water.\n",
    "yew.md": "A yew lives two thousand years. All of it but the aril is poisonous.\n",
}
QUESTION = "how tall grows an oak"


def trees(shell: Shell, folder: Path) -> None:
    """The folder, ingested; no vectors."""
    indexes.write(folder / "trees", TREES)
    assert shell("ingest", "trees").code == 0


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, *scripts: Script) -> Iterator[ChatServer]:
    """The service that `ask` uses: no other flag or setting is needed."""
    with ChatServer(*scripts) as server, monkeypatch.context() as patch:
        for name, value in server.environ.items():
            patch.setenv(name, value)
        patch.setenv("RAGCLI_CHAT__MODEL", "toy")
        patch.setenv("RAGCLI_CHAT__RETRIES", "0")
        yield server


def shows_no_key(out: str) -> bool:
    return KEY not in out
