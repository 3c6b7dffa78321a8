"""The reranker that runs here (spec P4, M8): order, progress, what was cut, the time budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.errors import RagcliError
from ragcli.models.cross_encoder import CrossEncoder
from ragcli.models.place import ModelPlace
from ragcli.options import ModelsSettings, RerankSettings, Settings
from ragcli.rerankers import open_reranker
from ragcli.rerankers.onnx import OnnxReranker
from ragcli.types import Event, Relevance, ignore_event
from tests.models import toy_bert
from tests.models.test_cross_encoder import expected, texts


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    folder = toy_bert.write_folder(tmp_path / "toy")
    return Settings(
        models=ModelsSettings(precision="fp32", threads=2), rerank=RerankSettings(reranker="onnx", model=str(folder))
    )


@pytest.fixture
def place(tmp_path: Path) -> ModelPlace:
    return ModelPlace(tmp_path / "cache", offline=True)


@pytest.mark.spec("P4", "M8")
def test_logits_in_the_order_of_the_passages(chosen: Settings, place: ModelPlace) -> None:
    told: list[Event] = []
    reranker = open_reranker(chosen, place, told.append)
    passages = texts(9, 3)
    found = reranker.judge("a b", passages)
    assert found.logits
    assert found.warnings == ()
    assert list(found.scores) == pytest.approx([expected("a b", one) for one in passages], abs=1e-5)
    assert [(event.done, event.total) for event in told] == [(done, 9) for done in range(10)]
    assert {event.stage for event in told} == {"reranking"}
    assert reranker.name == f"onnx:{chosen.rerank.model}"
    reranker.close()


@pytest.mark.spec("P4")
def test_what_could_not_be_read_to_the_end_is_told(chosen: Settings, place: ModelPlace) -> None:
    reranker = open_reranker(chosen, place, ignore_event)
    long = " ".join(["a"] * 40)  # with "b c" and three special tokens 45, of which 24 fit
    found = reranker.judge("b c", ["a", long, long])
    assert found.warnings == (
        "2 of 3 passages, with the query, are longer than the reranker's window of 24 tokens: "
        "42 tokens at their ends were not judged",
    )


@pytest.mark.spec("P3")
def test_past_its_time_budget_it_says_how_far_it_came(chosen: Settings, place: ModelPlace) -> None:
    now = iter(range(1000))
    clock: Callable[[], float] = lambda: float(next(now))  # noqa: E731 - a second each time it is asked
    one_thread = Settings(models=ModelsSettings(precision="fp32", threads=1), rerank=chosen.rerank)
    reranker = OnnxReranker("toy", CrossEncoder.open(one_thread, place), 3.0, now=clock)
    with pytest.raises(RagcliError, match=r"time_budget_seconds = 3 \(2 of 5 passages judged\)"):
        reranker.judge("a", texts(5, 1))


def test_of_no_passages_nothing_is_opened(chosen: Settings, place: ModelPlace) -> None:
    assert open_reranker(chosen, place, ignore_event).judge("a", []) == Relevance((), logits=True)
    assert not place.cache.exists()
