"""E01: an embedder of another dimension is refused, with both names and the command; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.mark.spec("I36", "C9")
def test_another_embedder_of_another_dimension_is_refused_by_query_and_ingest(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak", "b.txt": "an elm"})
    monkeypatch.setenv("RAGCLI_EMBEDDING__DIMENSIONS", "8")
    assert shell("ingest", "docs").code == 0
    indexes.write(tmp_path, {"ragcli.yaml": "embedding: {dimensions: 16}"})
    monkeypatch.delenv("RAGCLI_EMBEDDING__DIMENSIONS")
    monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:wide")
    for command in (["query", "oak"], ["ingest", "docs"]):
        refused = shell(*command)
        assert refused.code == 3
        assert "'openai:wide'" in refused.err
        assert "'openai:toy' (8 dimensions" in refused.err
        assert "ragcli ingest --re-embed" in refused.err
    assert "2 of 2 chunks, by openai:toy (8 dimensions)" in shell("inspect").out

    service.requests.clear()
    again = shell("ingest", "--re-embed")
    assert again.code == 0
    assert "2 embedded" in again.err
    assert {request.body["model"] for request in service.requests} == {"wide"}
    assert "2 of 2 chunks, by openai:wide (16 dimensions)" in shell("inspect").out
    assert shell("query", "oak", "--json").json()["mode"] == "hybrid"


@pytest.mark.spec("I36")
def test_a_keyword_query_needs_no_embedder(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak"})
    assert shell("ingest", "docs").code == 0
    service.requests.clear()
    monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:other")
    assert shell("query", "oak", "--mode", "keyword").code == 0
    assert service.requests == []
