"""Embedding that is killed leaves a sound index; running again embeds the rest, nothing twice (spec I35, M11, A37)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcli.options import ModelsSettings, Settings
from tests import crash, indexes
from tests.models import toy_bert


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(toy_bert.write_folder(tmp_path_factory.mktemp("toy") / "model"))


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is converted of the toy model is kept where the test ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGCLI_MODELS", str(tmp_path_factory.mktemp("models")))
        yield


def embedded_by(model: str) -> Settings:
    return Settings(models=ModelsSettings(embedder=model))


@pytest.mark.spec("I35", "M11")
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment(tmp_path: Path, model: str, seed: int) -> None:
    chance = random.Random(500 + seed)
    corpus, index, fresh = tmp_path / "corpus", tmp_path / "i.db", tmp_path / "fresh.db"
    crash.make_corpus(corpus, seed, files=30, records=120)
    for is_changed in (False, True):
        if is_changed:
            crash.change_corpus(corpus, seed)
        for _ in range(2):
            reported, _, _ = crash.kill_at(index, corpus, chance, embedder=model)
            crash.inspect(index, reported)
        done = indexes.take_in(index, corpus, settings=embedded_by(model), prune=True)
        indexes.take_in(fresh, corpus, settings=embedded_by(model), prune=True)
        assert done.unembedded == 0
        assert indexes.faults(index) == []
        indexes.same(index, fresh, ("oak7", "note"))
        assert indexes.vectors_of(index) == indexes.vectors_of(fresh)
        assert indexes.rows(index, "SELECT count(*) FROM spare_vectors") == [(0,)]


@pytest.mark.spec("I34", "M11")
def test_what_was_embedded_before_the_kill_is_not_embedded_again(tmp_path: Path, model: str) -> None:
    corpus, index = tmp_path / "corpus", tmp_path / "i.db"
    crash.make_corpus(corpus, 3, files=30, records=120)
    chance = random.Random(1)
    before = 0
    while not before:
        crash.kill_at(index, corpus, chance, embedder=model)
        if index.exists():
            (before,) = indexes.rows(index, "SELECT count(*) FROM vectors")[0]
    again = indexes.take_in(index, corpus, settings=embedded_by(model))
    (chunks,) = indexes.rows(index, "SELECT count(*) FROM chunks")[0]
    assert again.embedded + again.reused == chunks - before
    assert indexes.take_in(index, corpus, settings=embedded_by(model)).embedded == 0
