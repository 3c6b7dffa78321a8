"""An ingest that is killed leaves a sound index, and running again completes it (spec I35)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests import crash, indexes

QUERIES = ("oak7", "changed oak3", "yew1 ash2 elm3", "note")


@pytest.mark.spec("I35")
@pytest.mark.parametrize("seed", range(6))
def test_killed_while_it_builds(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    corpus, index, fresh = tmp_path / "corpus", tmp_path / "i.db", tmp_path / "fresh.db"
    crash.make_corpus(corpus, seed)
    for _ in range(2):
        reported, _, _ = crash.kill_at(index, corpus, chance)
        crash.inspect(index, reported)
    indexes.take_in(index, corpus)
    indexes.take_in(fresh, corpus)
    assert indexes.faults(index) == []
    indexes.same(index, fresh, QUERIES)


@pytest.mark.spec("I34", "I35")
@pytest.mark.parametrize("seed", range(6))
def test_killed_while_it_replaces(tmp_path: Path, seed: int) -> None:
    chance = random.Random(100 + seed)
    corpus, index, fresh = tmp_path / "corpus", tmp_path / "i.db", tmp_path / "fresh.db"
    crash.make_corpus(corpus, seed)
    indexes.take_in(index, corpus)
    before = indexes.content(index)
    crash.change_corpus(corpus, seed)
    indexes.take_in(fresh, corpus)
    after = indexes.content(fresh)

    crash.kill_at(index, corpus, chance)
    crash.inspect(index, 0)
    for name, found in indexes.content(index).items():  # each document is as it was or as it is to be, never between
        assert found in (before.get(name), after.get(name))
    assert indexes.content(index).keys() >= before.keys() & after.keys()

    indexes.take_in(index, corpus, prune=True)
    assert indexes.faults(index) == []
    indexes.same(index, fresh, QUERIES)


@pytest.mark.spec("I35", "I39")
def test_killed_with_workers(tmp_path: Path) -> None:
    chance = random.Random(7)
    corpus, index, fresh = tmp_path / "corpus", tmp_path / "i.db", tmp_path / "fresh.db"
    crash.make_corpus(corpus, 7)
    reported, _, workers = crash.kill_at(index, corpus, chance, workers=2)
    crash.inspect(index, reported)
    assert crash.wait_for_end(workers) == []
    indexes.take_in(index, corpus)
    indexes.take_in(fresh, corpus)
    indexes.same(index, fresh, QUERIES)
