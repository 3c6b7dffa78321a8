"""Which embedder an index may be opened with (spec I36)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ragcli.errors import IndexMismatch
from ragcli.models import guard
from ragcli.options import EmbeddingSettings, ModelsSettings, Settings
from ragcli.types import EmbedderCard

CARD = EmbedderCard(
    name="small", fingerprint="ab" * 16, dimension=8, precision="fp32", pooling="cls", query_prefix="query: ",
    passage_prefix="passage: ", max_tokens=64, long="refuse",
)  # fmt: skip


def settings(embedder: str = "minilm", **embedding: object) -> Settings:
    return Settings(models=ModelsSettings(embedder=embedder), embedding=EmbeddingSettings(**embedding))  # type: ignore[arg-type]


@pytest.mark.spec("I36")
def test_the_index_keeps_its_own_embedder_when_nobody_chose() -> None:
    own = guard.adopted(Settings(), CARD, explicit=())
    assert (own.models.embedder, own.models.precision) == ("small", "fp32")
    assert (own.embedding.query_prefix, own.embedding.passage_prefix) == ("query: ", "passage: ")
    assert (own.embedding.pooling, own.embedding.max_tokens, own.embedding.long) == ("cls", 64, "refuse")


@pytest.mark.spec("I36")
@pytest.mark.parametrize(
    ("chosen", "explicit", "words"),
    [
        (settings("big"), {"models.embedder"}, ["'big'", "'small' (8 dimensions, fp32, #abababababab)"]),
        (settings("big"), None, ["'big'", "'small'"]),
        (settings(query_prefix="q: "), {"embedding.query_prefix"}, ["embedding.query_prefix = 'q: '", "'query: '"]),
        (settings(passage_prefix=""), {"embedding.passage_prefix"}, ["embedding.passage_prefix = ''", "'passage: '"]),
        (settings(pooling="mean"), {"embedding.pooling"}, ["embedding.pooling = 'mean'", "'cls'"]),
        (settings(max_tokens=32), {"embedding.max_tokens"}, ["embedding.max_tokens = 32", "64"]),
        (settings(), {"embedding.long"}, ["embedding.long = 'windows'", "'refuse'"]),
        (settings(), {"models.precision"}, ["models.precision = 'int8'", "'fp32'"]),
    ],
)
def test_another_embedder_is_refused_with_both_and_the_command(
    chosen: Settings, explicit: set[str] | None, words: list[str]
) -> None:
    with pytest.raises(IndexMismatch) as caught:
        guard.adopted(chosen, CARD, explicit)
    assert all(word in caught.value.message for word in words)
    assert "ragcli ingest --re-embed" in caught.value.hint
    assert caught.value.exit_code == 3


def test_the_same_settings_are_no_difference() -> None:
    chosen = settings("small", query_prefix="query: ", pooling="cls", max_tokens=64, long="refuse")
    assert guard.adopted(chosen, CARD, {"models.embedder", "embedding.query_prefix", "embedding.pooling"})


def test_no_embedder_goes_with_every_index() -> None:
    assert guard.adopted(settings("none"), CARD, {"models.embedder"}).models.embedder == "none"
    assert guard.adopted(settings("none"), None, {"models.embedder"}).models.embedder == "none"


@pytest.mark.spec("I36")
def test_an_index_without_vectors_stays_without() -> None:
    assert guard.adopted(Settings(), None, explicit=()).models.embedder == "none"
    with pytest.raises(IndexMismatch, match="the index has no vectors"):
        guard.adopted(settings("minilm"), None, {"models.embedder"})


@pytest.mark.spec("I36")
def test_one_name_with_other_weights_is_refused_by_its_fingerprint() -> None:
    guard.check(CARD, CARD)
    guard.check(CARD, replace(CARD, dimension=0))  # an endpoint that has not answered yet
    with pytest.raises(
        IndexMismatch, match=r"#abababababab\), but there is 'small' \(8 dimensions, fp32, #cdcdcdcdcdcd\)"
    ):
        guard.check(CARD, replace(CARD, fingerprint="cd" * 16))
    with pytest.raises(IndexMismatch, match=r"8 dimensions.*16 dimensions"):
        guard.check(CARD, replace(CARD, dimension=16))


def test_an_index_is_embedded_anew_by_its_own_embedder_unless_another_is_chosen() -> None:
    assert guard.chosen_anew(Settings(), CARD, ()).models.embedder == "small"
    assert guard.chosen_anew(Settings(), None, ()).models.embedder == "minilm"
    assert guard.chosen_anew(settings("big"), CARD, {"models.embedder"}).models.embedder == "big"
