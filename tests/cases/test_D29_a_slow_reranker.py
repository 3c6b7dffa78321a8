"""D29: reranking took two minutes. It can be switched off, has a time budget, and tells how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.options import ModelsSettings, RerankSettings, Settings
from ragcli.pipeline import Pipeline
from ragcli.types import Event
from tests.cases.reranking import four_oaks, reranked, scored, serving
from tests.commands import Shell
from tests.indexes import index_of
from tests.services import EmbeddingService, Reply


@pytest.mark.spec("P3", "C5")
def test_it_can_be_switched_off_for_one_call(shell: Shell, tmp_path: Path) -> None:
    four_oaks(shell, tmp_path)
    with serving(lambda texts: {"results": scored([0.5] * len(texts))}) as service:
        found = reranked(shell, service, "--no-rerank").json()
    assert service.requests == []
    assert "rerank" not in {step["name"] for step in found["stages"]}


@pytest.mark.spec("P3", "R8")
def test_past_its_time_budget_the_order_before_it_stands(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    four_oaks(shell, tmp_path)
    monkeypatch.setenv("RAGCLI_RERANK__TIME_BUDGET_SECONDS", "0.2")
    with EmbeddingService(rule=lambda request: Reply(body={}, delay=5)) as service:
        found = reranked(shell, service)
    assert found.code == 0
    assert [hit["document_id"] for hit in found.json()["hits"]] == ["a.md", "b.md", "c.md", "d.md"]
    (warning,) = found.json()["warnings"]
    assert "rerank.time_budget_seconds = 0.2 (0 of 4 passages judged)" in warning


@pytest.mark.spec("C5")
def test_it_tells_how_far_it_is(shell: Shell, tmp_path: Path) -> None:
    four_oaks(shell, tmp_path)
    told: list[Event] = []
    with serving(lambda texts: {"results": scored([0.5] * len(texts))}) as service:
        settings = Settings(
            models=ModelsSettings(embedder="none"), rerank=RerankSettings(reranker="vllm", base_url=service.url)
        )
        with Pipeline.open(index_of(tmp_path), settings, listen=told.append) as pipeline:
            pipeline.retrieve("oak")
    assert [(event.done, event.total) for event in told if event.stage == "reranking"] == [(0, 4), (4, 4)]
    assert [event.stage for event in told][:2] == ["retrieving", "rerank"]
