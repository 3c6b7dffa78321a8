"""Hybrid and dense retrieval through the pipeline against plain-loop references (spec R3, R4, R6, R8, R9)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from ragcli import Pipeline
from ragcli.errors import IndexMismatch, RemoteError, UsageError
from ragcli.options import (
    Condition,
    EmbeddingSettings,
    FusionMethod,
    FusionSettings,
    ModelsSettings,
    RetrievalOptions,
    Settings,
)
from ragcli.types import Hit, Result
from tests import indexes
from tests.models import toy_bert
from tests.reference import bm25, dense
from tests.reference import fuse as reference
from tests.reference.terms import terms
from tests.services import EmbeddingService, embeddings, refusing, unit, vector_of

WORDS = [f"w{number}" for number in range(40)]
TEXTS = {f"d{n:02}": " ".join(Random(n).choices(WORDS, k=3 + n % 17)) for n in range(60)}
QUERIES = ["w1 w2", "w3 w3 w39", "w5 unknown", "w0 w7 w11 w13 w17"]


@pytest.fixture(scope="module")
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService() as running:
        yield running


@pytest.fixture(scope="module")
def settings(service: EmbeddingService) -> Settings:
    return Settings(
        models=ModelsSettings(embedder="openai:toy"),
        embedding=EmbeddingSettings(base_url=service.url, api_key="k", retries=0),
    )


@pytest.fixture(scope="module")
def index(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hybrid")
    lines = [
        json.dumps({"_id": name, "text": text, "metadata": {"even": int(name[1:]) % 2 == 0}})
        for name, text in TEXTS.items()
    ]
    indexes.write(folder, {"r.jsonl": "\n".join(lines)})
    indexes.take_in(folder / "i.db", folder / "r.jsonl", settings=settings)
    return folder / "i.db"


def retrieved(index: Path, settings: Settings, query: str, **options: object) -> Result:
    with Pipeline.open(index, settings) as pipeline:
        return pipeline.retrieve(query, RetrievalOptions(**options))  # type: ignore[arg-type]


def hits_of(result: Result) -> dict[str, Hit]:
    return {hit.chunk.document_id: hit for hit in result.ranking.hits}


def cosines(query: str) -> dict[str, float]:
    """Of every document, by a plain loop over what the service gave, rounded to float16 as it is stored."""
    asked = unit(vector_of(query))
    stored = {name: indexes.halves(unit(vector_of(text))) for name, text in TEXTS.items()}
    return {name: dense.cosine(asked, vector) for name, vector in stored.items()}


def keyword_scores(query: str) -> dict[str, float]:
    return bm25.scores({name: terms(text) for name, text in TEXTS.items()}, terms(query))


def best(scores: dict[str, float], k: int) -> list[str]:
    return sorted(scores, key=lambda name: (-scores[name], name))[:k]


@pytest.mark.spec("R3", "R41", "I31")
@pytest.mark.parametrize("query", QUERIES)
def test_vector_mode_ranks_by_cosine(index: Path, settings: Settings, query: str) -> None:
    result = retrieved(index, settings, query, mode="vector", top_k=10, min_score=-1.0)
    expected = cosines(query)
    assert result.mode == "vector"
    assert list(hits_of(result)) == best(expected, 10)
    for name, hit in hits_of(result).items():
        assert hit.score == pytest.approx(expected[name], abs=1e-6)
        assert (hit.score_kind, hit.arms["dense"].score) == ("cosine", hit.score)
    assert [step.stage for step in result.trace.steps] == ["embedding", "dense"]


@pytest.mark.spec("R6", "R5", "R3")
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("method", ["relative", "zscore", "rrf"])
@pytest.mark.parametrize("weights", [{}, {"bm25": 0.2, "dense": 0.8}])
def test_hybrid_is_the_fusion_of_the_true_scores(
    index: Path, settings: Settings, query: str, method: str, weights: dict[str, float]
) -> None:
    depth = 15
    chosen = replace(settings, fusion=FusionSettings(method=method, weights=weights, depth=depth))  # type: ignore[arg-type]
    found = retrieved(index, chosen, query, top_k=12, candidate_count=12)
    words, meaning = keyword_scores(query), {n: s for n, s in cosines(query).items() if s >= 0.0}
    ranks = [{name: rank for rank, name in enumerate(best(scores, depth), 1)} for scores in (words, meaning)]
    union = sorted(set().union(*ranks))
    numbers = {name: number for number, name in enumerate(union)}
    true = ({name: words.get(name, 0.0) for name in union}, {name: cosines(query)[name] for name in union})
    own = chosen.fusion
    arms = [
        (
            {numbers[name]: rank for name, rank in arm_ranks.items()},
            {numbers[name]: score for name, score in scores.items()},
            own.weight(arm),
        )
        for arm, arm_ranks, scores in zip(("bm25", "dense"), ranks, true, strict=True)
    ]
    wanted = {
        "relative": lambda: reference.relative(arms),
        "zscore": lambda: reference.zscore(arms),
        "rrf": lambda: reference.rrf(arms, 60),
    }[method]()
    expected = {name: float(wanted[number]) for name, number in numbers.items()}
    assert {name: hit.score for name, hit in hits_of(found).items()} == {
        name: pytest.approx(expected[name], abs=1e-5) for name in hits_of(found)
    }
    assert sorted((expected[name] for name in hits_of(found)), reverse=True) == pytest.approx(
        sorted(expected.values(), reverse=True)[:12], abs=1e-5
    )
    for hit in found.ranking.hits:
        assert hit.score_kind == method
        assert sum(arm.part for arm in hit.arms.values()) == pytest.approx(hit.score, abs=1e-12)


@pytest.mark.spec("R9")
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_a_filter_works_inside_the_arms(index: Path, settings: Settings, mode: str) -> None:
    even = (Condition("even", True),)
    found = retrieved(index, settings, "w1 w2", mode=mode, top_k=40, metadata_filter=even, min_score=-1.0)
    names = {name for name in TEXTS if int(name[1:]) % 2 == 0}
    assert set(hits_of(found)) == names


@pytest.fixture
def failing(service: EmbeddingService) -> Iterator[None]:
    """The service answers nothing but 500."""
    service.rule = refusing("", 500)
    yield
    service.rule = embeddings


@pytest.mark.spec("R8")
@pytest.mark.usefixtures("failing")
def test_a_failing_dense_arm_is_a_warning_and_words_serve_the_call(index: Path, settings: Settings) -> None:
    found = retrieved(index, settings, "w1 w2")
    with pytest.raises(RemoteError, match="500"):
        retrieved(index, settings, "w1 w2", mode="vector")
    assert list(hits_of(found)) == best(keyword_scores("w1 w2"), 5)
    (warning,) = found.warnings
    assert "the dense arm failed, bm25 alone ranked this" in warning
    assert [step.warnings for step in found.trace.steps if step.stage == "dense"] == [(warning,)]


@pytest.mark.spec("R3")
def test_words_that_nobody_has_leave_the_ranking_to_meaning_and_that_is_told(index: Path, settings: Settings) -> None:
    found = retrieved(index, settings, "unheard")
    assert found.notes == ("ranked by meaning alone: not in the index: unheard",)
    assert all(hit.arms["bm25"].part == 0.0 for hit in found.ranking.hits)


@pytest.mark.spec("R3")
def test_an_index_without_vectors_is_searched_by_words(tmp_path: Path) -> None:
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.txt": "an oak"}))
    found = retrieved(tmp_path / "i.db", Settings(), "oak")
    assert (found.mode, found.warnings) == ("keyword", ())
    assert found.ranking.hits[0].score_kind == "bm25"
    with pytest.raises(IndexMismatch, match="the index has no vectors"):
        retrieved(tmp_path / "i.db", Settings(), "oak", mode="vector")


@pytest.mark.spec("R8")
def test_hybrid_that_was_asked_for_and_can_not_be_is_a_warning(tmp_path: Path) -> None:
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.txt": "an oak"}))
    with Pipeline.open(tmp_path / "i.db", Settings(), explicit={"retrieval.mode"}) as pipeline:
        found = pipeline.retrieve("oak")
    assert found.warnings == (
        "the index has no vectors: searched by keywords alone; add them: ragcli ingest --re-embed",
    )


def service_settings(service: EmbeddingService, model: str = "toy", **embedding: Any) -> Settings:
    return Settings(
        models=ModelsSettings(embedder=f"openai:{model}"),
        embedding=EmbeddingSettings(base_url=service.url, api_key="k", retries=0, **embedding),
    )


@pytest.mark.spec("I36")
@pytest.mark.parametrize("dimensions", [None, 8])
def test_an_open_pipeline_follows_an_index_that_is_embedded_anew(
    tmp_path: Path, service: EmbeddingService, dimensions: int | None
) -> None:
    docs, index = indexes.write(tmp_path / "d", {"a.txt": "oak", "b.txt": "elm"}), tmp_path / "i.db"
    indexes.take_in(index, docs, settings=service_settings(service))
    with Pipeline.open(index, service_settings(service), explicit=()) as pipeline:
        pipeline.retrieve("oak", RetrievalOptions(mode="vector"))
        indexes.take_in(index, settings=service_settings(service, "other", dimensions=dimensions), re_embed=True)
        service.requests.clear()
        found = pipeline.retrieve("oak", RetrievalOptions(mode="vector"))
    assert [request.body["model"] for request in service.requests] == ["other"]
    assert found.ranking.hits[0].chunk.document_id == "a.txt"
    with (
        Pipeline.open(index, service_settings(service), explicit={"models.embedder"}) as pipeline,
        pytest.raises(IndexMismatch, match="'openai:toy'"),
    ):
        pipeline.retrieve("oak")


# two candidates at first, four times as many whenever the condition leaves less than a page
IN_ROUNDS: dict[str, Any] = {"top_k": 2, "candidate_count": 2, "where": 'document_id == "nobody"'}


@pytest.mark.spec("R8")
@pytest.mark.usefixtures("failing")
def test_an_arm_that_failed_is_told_of_however_often_the_others_are_asked(index: Path, settings: Settings) -> None:
    found = retrieved(index, settings, "w1 w2 w3 w4", **IN_ROUNDS)
    assert len(found.ranking.dropped) > 2  # there was more than one round
    assert ["the dense arm failed" in warning for warning in found.warnings] == [True]
    assert [step.stage for step in found.trace.steps] == ["dense", "bm25", "where", "cut"]


@pytest.mark.spec("R8", "C8")
def test_the_query_is_embedded_once_and_that_is_told_however_often_the_arms_are_asked(
    index: Path, settings: Settings, service: EmbeddingService
) -> None:
    service.requests.clear()
    found = retrieved(index, settings, "w1 w2 w3 w4", **IN_ROUNDS)
    assert len(found.ranking.dropped) > 2
    assert [step.stage for step in found.trace.steps] == ["bm25", "embedding", "dense", "fusion", "where", "cut"]
    assert service.texts == ["w1 w2 w3 w4"]


@pytest.mark.spec("R8", "R5")
@pytest.mark.parametrize("method", ["rrf", "relative"])
def test_words_stand_in_for_a_model_that_is_missing_whatever_their_weight(
    tmp_path: Path, method: FusionMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "models"))
    toy = str(toy_bert.write_folder(tmp_path / "toy"))
    own = Settings(models=ModelsSettings(embedder=toy))
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.txt": "one", "b.txt": "two"}), settings=own)
    (tmp_path / "toy").rename(tmp_path / "gone")
    only_dense = replace(Settings(), fusion=FusionSettings(method=method, weights={"bm25": 0, "dense": 1}))
    found = retrieved(tmp_path / "i.db", only_dense, "two")
    assert [hit.chunk.document_id for hit in found.ranking.hits] == ["b.txt"]
    assert found.ranking.hits[0].score_kind == "bm25"
    assert "searched by keywords alone" in found.warnings[0]


@pytest.mark.spec("I36")
def test_a_model_folder_may_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    toy_bert.write_folder(tmp_path / "toy")
    own = Settings(models=ModelsSettings(embedder="./toy"))
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.txt": "one", "b.txt": "two"}), settings=own)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert retrieved(tmp_path / "i.db", Settings(), "two").warnings == ()
    (tmp_path / "toy").rename(tmp_path / "elsewhere" / "moved")
    moved = Settings(models=ModelsSettings(embedder="./moved"))
    assert retrieved(tmp_path / "i.db", moved, "two", mode="vector").ranking.hits[0].chunk.document_id == "b.txt"


@pytest.mark.spec("I36")
def test_asked_dimensions_and_prefixes_stay_with_the_index(tmp_path: Path, service: EmbeddingService) -> None:
    docs, index = indexes.write(tmp_path / "d", {"a.txt": "oak"}), tmp_path / "i.db"
    indexes.take_in(index, docs, settings=service_settings(service, dimensions=8, query_prefix="q: "))
    service.requests.clear()
    with Pipeline.open(index, service_settings(service), explicit={"embedding.base_url", "embedding.api_key"}) as it:
        it.retrieve("oak")
    assert [(request.body["dimensions"], request.texts) for request in service.requests] == [(8, ["q: oak"])]
    with pytest.raises(IndexMismatch, match="dimensions = 16, but the index was built with 8"):
        retrieved(index, service_settings(service, dimensions=16), "oak")
    again = indexes.take_in(index, settings=service_settings(service, dimensions=16), re_embed=True)
    assert again.embedded == 1
    service.requests.clear()
    retrieved(index, service_settings(service), "oak")
    assert [(request.body["dimensions"], request.texts) for request in service.requests] == [(16, ["q: oak"])]


@pytest.mark.spec("R8")
def test_a_service_without_a_key_leaves_hybrid_search_to_words(index: Path) -> None:
    """The index names the service; nobody has said where it is."""
    with Pipeline.open(index, Settings(), explicit=()) as pipeline:
        found = pipeline.retrieve("w1 w2")
        with pytest.raises(UsageError):
            pipeline.retrieve("w1 w2", RetrievalOptions(mode="vector"))
    assert list(hits_of(found)) == best(keyword_scores("w1 w2"), 5)
    assert found.warnings[0].startswith("searched by keywords alone: ")


@pytest.mark.spec("R8")
def test_a_proxy_that_can_not_be_used_leaves_hybrid_search_to_words(
    index: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "nonsense://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    found = retrieved(index, settings, "w1 w2")
    assert list(hits_of(found)) == best(keyword_scores("w1 w2"), 5)
    assert "proxy can't be used" in found.warnings[0]


@pytest.mark.spec("R8")
def test_a_models_folder_that_is_none_leaves_hybrid_search_to_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "models"))
    own = Settings(models=ModelsSettings(embedder=str(toy_bert.write_folder(tmp_path / "toy"))))
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.txt": "one", "b.txt": "two"}), settings=own)
    monkeypatch.setenv("RAGCLI_MODELS", os.devnull)
    found = retrieved(tmp_path / "i.db", own, "two")
    assert [hit.chunk.document_id for hit in found.ranking.hits] == ["b.txt"]
    assert os.devnull in found.warnings[0]
