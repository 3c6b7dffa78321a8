"""A setting to an embedder: which kind is opened, and what names nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.errors import ModelMissing, UsageError
from ragcli.models.embedder import open_embedder
from ragcli.models.endpoint import EndpointEmbedder
from ragcli.models.place import ModelPlace
from ragcli.models.static import StaticEmbedder
from ragcli.models.transformer import TransformerEmbedder
from ragcli.options import EmbeddingSettings, ModelsSettings, Settings
from tests.models.toy_bert import HIDDEN, write_folder


def named(name: str) -> Settings:
    return Settings(
        models=ModelsSettings(embedder=name), embedding=EmbeddingSettings(base_url="http://127.0.0.1:9/v1", api_key="k")
    )


@pytest.mark.spec("M5")
def test_a_folder_is_a_transformer_its_card_known_at_once(tmp_path: Path) -> None:
    embedder = open_embedder(named(str(write_folder(tmp_path / "toy"))), ModelPlace(tmp_path / "cache"))
    assert isinstance(embedder, TransformerEmbedder)
    assert embedder.card.dimension == HIDDEN
    assert not list((tmp_path / "cache").rglob("*.onnx"))


@pytest.mark.spec("M5")
def test_a_service_is_not_asked_before_it_is_needed(tmp_path: Path) -> None:
    embedder = open_embedder(named("openai:some-model"), ModelPlace(tmp_path, offline=True))
    assert isinstance(embedder, EndpointEmbedder)


@pytest.mark.spec("M6")
def test_fast_is_a_static_model(pulled: Callable[[str], Path]) -> None:
    place = ModelPlace(pulled("wordllama-256").parent, offline=True)
    assert isinstance(open_embedder(named("fast"), place), StaticEmbedder)


def test_a_static_model_has_the_mean_alone(tmp_path: Path) -> None:
    place = ModelPlace(tmp_path, offline=True)
    chosen = Settings(models=ModelsSettings(embedder="fast"), embedding=EmbeddingSettings(pooling="cls"))
    with pytest.raises(UsageError, match=r"embedding\.pooling = 'cls', but wordllama-256 has the mean alone"):
        open_embedder(chosen, place)


def test_names_of_nothing(tmp_path: Path) -> None:
    place = ModelPlace(tmp_path, offline=True)
    with pytest.raises(UsageError, match="there is no such embedder; did you mean minilm"):
        open_embedder(named("minilmm"), place)
    for wrong in ("hub:", "hub:model", "hub:../model", "hub:org/../model", "hub:org/a/b"):
        with pytest.raises(UsageError, match="names no model of the hub"):
            open_embedder(named(wrong), place)
    with pytest.raises(ModelMissing, match="hub:org/model is not in"):
        open_embedder(named("hub:org/model"), place)
