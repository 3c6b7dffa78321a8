"""Ingest holds a few batches at a time: what it keeps in memory does not grow with the corpus (spec I39).

Measured as the peak of what Python allocates, with batches made small, over a corpus and one four times as large.
SQLite's own pages are not counted: they are bounded by its cache.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from ragcli.ingest import commit, ingest_paths, prepare, run, workers
from ragcli.options import IngestSettings
from ragcli.store.sqlite import merging
from ragcli.types import Event
from tests import indexes

ONE_WORKER = indexes.keywords(ingest=IngestSettings(workers=1))
SMALL, LARGE = 40, 160  # documents
WORDS = [f"word{n}" for n in range(500)]


def texts(count: int) -> list[str]:
    chance = Random(39)
    return [" ".join(chance.choices(WORDS, k=2000)) for _ in range(count)]


def as_files(folder: Path, count: int) -> Path:
    return indexes.write(folder, {f"{n:04}.txt": text for n, text in enumerate(texts(count))})


def as_a_collection(folder: Path, count: int) -> Path:
    lines = [json.dumps({"_id": str(n), "text": text}) for n, text in enumerate(texts(count))]
    return indexes.write(folder, {"corpus.jsonl": "\n".join(lines)})


def collect(event: Event) -> None:
    gc.collect()


def peak(index: Path, docs: Path) -> int:
    """The most that was held at any moment, garbage of closed batches not counted."""
    gc.collect()
    gc.freeze()  # what is there already need not be looked through at every event
    tracemalloc.start()
    try:
        ingest_paths([str(docs)], ONE_WORKER, index, listen=collect)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.spec("I39")
@pytest.mark.parametrize("corpus", [as_files, as_a_collection])
def test_four_times_the_corpus_takes_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corpus: Callable[[Path, int], Path]
) -> None:
    monkeypatch.setattr(run, "BATCH_COST", 60_000)
    monkeypatch.setattr(run, "ONE_RUN", 60_000)
    monkeypatch.setattr("ragcli.read.load.RUN", 60_000)
    monkeypatch.setattr(merging, "SLICE", 30_000)
    monkeypatch.setattr(commit, "GROUP_CHUNKS", 40)
    small, large = corpus(tmp_path / "small", SMALL), corpus(tmp_path / "large", LARGE)
    peak(tmp_path / "first.db", small)  # what is imported and cached once
    before, after = peak(tmp_path / "small.db", small), peak(tmp_path / "large.db", large)
    added = sum(map(len, texts(LARGE))) - sum(map(len, texts(SMALL)))
    assert after - before < added / 4


@pytest.mark.spec("I39")
def test_with_workers_a_few_batches_are_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = run._batches
    begun: list[workers.Jobs] = []
    under_way: list[int] = []  # at each commit

    def batches(jobs: Iterator[prepare.Job]) -> Iterator[workers.Jobs]:
        for batch in real(jobs):
            begun.append(batch)
            yield batch

    def listen(event: Event) -> None:
        if event.stage == "reading":
            under_way.append(len(begun) - len(under_way) - 1)

    monkeypatch.setattr(run, "BATCH_COST", 60_000)
    monkeypatch.setattr(run, "_batches", batches)
    docs = as_files(tmp_path / "docs", LARGE)
    ingest_paths([str(docs)], indexes.keywords(ingest=IngestSettings(workers=2)), tmp_path / "i.db", listen=listen)
    assert len(begun) > 20
    assert max(under_way) <= 3  # one with each worker, one to be written next
