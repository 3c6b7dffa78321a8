"""Embedding at ingest with a model that runs here: what goes in, what is kept, what is told (spec I22, I24, M11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ragcli.errors import IndexMissing, RagcliError
from ragcli.options import EmbeddingSettings, IngestSettings, ModelsSettings, Settings
from ragcli.types import Event, IngestOptions, IngestReport
from tests import indexes
from tests.models import toy_bert

LONG = " ".join(["one two three four five a b"] * 12)  # 84 tokens; the toy's window is 24


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGCLI_MODELS", str(tmp_path_factory.mktemp("models")))
        yield str(toy_bert.write_folder(tmp_path_factory.mktemp("toy") / "model"))


def settings(model: str, **embedding: object) -> Settings:
    return Settings(models=ModelsSettings(embedder=model), embedding=EmbeddingSettings(**embedding))  # type: ignore[arg-type]


def records(folder: Path, **texts: str) -> Path:
    lines = "".join(f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in texts.items())
    return indexes.write(folder, {"r.jsonl": lines}) / "r.jsonl"


def vector(index: Path, name: str) -> np.ndarray:
    return np.frombuffer(indexes.vectors_of(index)[name, 0][1], "<f2").astype(np.float32)


def reference_of(text: str) -> np.ndarray:
    """By the plain forward pass: each window's mean at length 1, weighed by its tokens; their sum at length 1."""
    ids = toy_bert.tokens(text)[1:-1]
    room = toy_bert.POSITIONS - 2
    found = toy_bert.reference(toy_bert.tensors())
    windows = [[2, *ids[at : at + room], 3] for at in range(0, len(ids), room)]
    means = [found.states(window).mean(axis=0) for window in windows]
    total = sum(len(window) * mean / np.linalg.norm(mean) for window, mean in zip(windows, means, strict=True))
    return np.asarray(total / np.linalg.norm(total))


@pytest.mark.spec("I22", "M5")
def test_a_text_longer_than_the_window_is_seen_whole(tmp_path: Path, model: str) -> None:
    path = records(tmp_path, long=LONG, start=" ".join(LONG.split()[:22]))
    report = indexes.take_in(tmp_path / "i.db", path, settings=settings(model))
    assert (report.embedded, report.unembedded, report.failed) == (2, 0, ())
    assert vector(tmp_path / "i.db", "long") @ reference_of(LONG) > 0.98  # int8 against float32
    assert vector(tmp_path / "i.db", "start") @ reference_of(" ".join(LONG.split()[:22])) > 0.98


@pytest.mark.spec("I22", "M11", "C9")
def test_or_refused_by_config_and_then_told(tmp_path: Path, model: str) -> None:
    path = records(tmp_path, long=LONG, short="one two")
    report = indexes.take_in(tmp_path / "i.db", path, settings=settings(model, long="refuse"))
    assert (report.embedded, report.unembedded) == (1, 1)
    (problem,) = report.failed
    assert (problem.path, problem.kind) == ("long", "embedding")
    assert "86 tokens are more than the model's window of 24" in problem.reason


@pytest.mark.spec("I39", "C5")
def test_progress_counts_chunks_and_reaches_its_end(tmp_path: Path, model: str) -> None:
    from ragcli.ingest import ingest_paths

    events: list[Event] = []
    texts = {f"r{n}": f"{['one', 'two', 'three'][n % 3]} x{n}" for n in range(90)}
    path = records(tmp_path, **texts)
    ingest_paths([str(path)], settings(model), tmp_path / "i.db", IngestOptions(), listen=events.append)
    embedding = [event for event in events if event.stage == "embedding"]
    assert [event.done for event in embedding] == sorted(event.done for event in embedding)
    assert {(event.total, event.unit) for event in embedding} == {(90, "chunks")}
    assert embedding[-1].done == 90


@pytest.mark.spec("I34")
def test_the_order_of_arrival_changes_no_vector(tmp_path: Path, model: str) -> None:
    texts = {f"r{n}": " ".join(["one", "two", "three", "four", "five"][: 1 + n % 5]) + f" a{n}" for n in range(40)}
    indexes.take_in(tmp_path / "all.db", records(tmp_path / "all", **texts), settings=settings(model))
    for n, (name, text) in enumerate(texts.items()):
        path = (
            indexes.write(tmp_path / "one", {f"{n}.jsonl": f'{{"_id": "{name}", "text": "{text}"}}\n'}) / f"{n}.jsonl"
        )
        if n % 10 == 0:
            indexes.take_in(tmp_path / "one.db", path, settings=settings(model))
    indexes.take_in(tmp_path / "one.db", tmp_path / "one", settings=settings(model))
    assert indexes.vectors_of(tmp_path / "all.db") == indexes.vectors_of(tmp_path / "one.db")


@pytest.mark.spec("I34", "I36")
def test_without_embedding_chunks_wait_and_the_next_ingest_completes_them(tmp_path: Path, model: str) -> None:
    path, index = records(tmp_path, a="one two", b="two three"), tmp_path / "i.db"
    indexes.take_in(index, path, settings=settings(model))
    more = records(tmp_path / "more", c="four five")

    def taken(embedder: str) -> IngestReport:
        return indexes.take_in(index, more, settings=settings(embedder))

    waiting = taken("none")
    assert (waiting.added, waiting.embedded, waiting.unembedded) == (1, 0, 1)
    assert waiting.warnings == ("1 chunk has no vector yet: ingest without --no-embed goes on from there",)
    done = taken(model)
    assert (done.unchanged, done.embedded, done.unembedded) == (1, 1, 0)
    assert indexes.faults(index) == []


def test_segments_are_merged_while_vectors_come_in(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragcli.ingest import commit, run

    monkeypatch.setattr(run, "MAINTAIN_EVERY", 1)
    monkeypatch.setattr(run, "BATCH_FILES", 3)
    monkeypatch.setattr(commit, "GROUP_SECONDS", 0.0)
    monkeypatch.setattr(commit, "GROUP_SHARE", 0.0)
    docs = indexes.write(tmp_path / "d", {f"{n}.txt": f"one x{n}" for n in range(300)})
    one_worker = msgspec.structs.replace(settings(model), ingest=IngestSettings(workers=1))
    assert indexes.take_in(tmp_path / "i.db", docs, settings=one_worker).unembedded == 0
    assert indexes.faults(tmp_path / "i.db") == []


def test_a_dry_run_says_what_would_be_embedded(tmp_path: Path, model: str) -> None:
    path, index = records(tmp_path, a="one two", b="two three"), tmp_path / "i.db"
    indexes.take_in(index, path, settings=settings(model))
    assert indexes.take_in(index, path, settings=settings(model), dry_run=True).unembedded == 0
    assert indexes.take_in(index, settings=settings(model), re_embed=True, dry_run=True).unembedded == 2
    assert indexes.take_in(index, settings=settings("none"), re_embed=True, dry_run=True).unembedded == 0


@pytest.mark.spec("M11", "I36")
@pytest.mark.parametrize("damage", ["model.safetensors", "tokenizer.json"])
def test_an_embedder_that_does_not_work_replaces_nothing(tmp_path: Path, model: str, damage: str) -> None:
    index, broken = tmp_path / "i.db", toy_bert.write_folder(tmp_path / "broken", toy_bert.tensors(seed=5))
    path = records(tmp_path, a="one two", b="two three")
    indexes.take_in(index, path, settings=settings(model))
    before = indexes.vectors_of(index)
    (broken / damage).write_bytes((broken / damage).read_bytes()[:100])
    for options in ({"re_embed": True}, {"reset": True}):
        with pytest.raises(RagcliError):
            indexes.take_in(index, path, settings=settings(str(broken)), **options)
        assert indexes.vectors_of(index) == before
    with pytest.raises(RagcliError):
        indexes.take_in(tmp_path / "new.db", path, settings=settings(str(broken)))
    assert not (tmp_path / "new.db").exists()


@pytest.mark.spec("C9")
def test_no_index_is_made_to_be_embedded_anew(tmp_path: Path, model: str) -> None:
    with pytest.raises(IndexMissing):
        indexes.take_in(tmp_path / "typo" / "i.db", settings=settings(model), re_embed=True)
    assert not (tmp_path / "typo").exists()


@pytest.mark.spec("C9", "M11")
def test_an_interrupted_run_keeps_what_it_embedded(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragcli.ingest import ingest_paths

    path, index = records(tmp_path, **{f"r{n}": f"one x{n}" for n in range(90)}), tmp_path / "i.db"

    def interrupt(event: Event) -> None:
        if event.stage == "embedding" and event.done >= 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest_paths([str(path)], settings(model), index, IngestOptions(), listen=interrupt)
    assert len(indexes.vectors_of(index)) >= 32
    assert indexes.faults(index) == []
    assert indexes.take_in(index, path, settings=settings(model)).unembedded == 0
