"""D19: MMR after hybrid search, where a hit came by its words and has no vector.

Its vector is made for the call; where there are no vectors at all, MMR is refused. The relevance is the score so far,
or the cosine with the query, as `retrieval.mmr_relevance` says; and the trace says which.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, embeddings, refusing

TEXTS = {"a.txt": "oak elm ash", "b.txt": "oak elm ash fir", "c.txt": "oak plum"}


@pytest.mark.spec("P2", "P1")
@pytest.mark.parametrize("flags", [("--mmr",), ("--redundancy-filter",)])
def test_a_chunk_that_waits_for_its_vector_is_embedded_for_the_call(
    shell: Shell, service: EmbeddingService, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    service.rule = refusing("plum")
    indexes.write(tmp_path / "docs", TEXTS)
    assert shell("ingest", "docs").code == 4
    service.rule = embeddings
    service.requests.clear()
    found = shell("query", "oak plum", "--mode", "keyword", *flags, "--json")
    assert found.code == 0
    assert {hit["document_id"] for hit in found.json()["hits"]} == set(TEXTS)
    assert service.texts == ["oak plum"]  # the document
    if flags == ("--mmr",):
        first = shell("query", "oak plum", "--mode", "keyword", *flags, "--json", "--explain").json()["hits"][0]
        assert first["document_id"] == "c.txt"
        assert first["trace"][-1]["parts"]["relevance"] == pytest.approx(0.5, abs=1e-12)  # 0.5 x the best score, as 1
        assert first["trace"][-1]["note"] == "bm25 score, scaled, 1.0000; the first pick"


@pytest.mark.spec("P1", "R8")
def test_without_an_embedder_the_others_are_compared_and_it_is_said(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.rule = refusing("plum")
    indexes.write(tmp_path / "docs", {**TEXTS, "d.txt": "oak elm ash"})
    assert shell("ingest", "docs").code == 4
    monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "none")
    found = shell("query", "oak plum", "--redundancy-filter", "--redundancy-threshold", "0.99", "--json")
    assert found.code == 0
    assert {hit["document_id"] for hit in found.json()["hits"]} == {"a.txt", "b.txt", "c.txt"}
    assert [drop["document_id"] for drop in found.json()["dropped"]] == ["d.txt"]
    assert "1 hit without a vector was kept: the redundancy filter can't compare it" in found.json()["warnings"]


@pytest.mark.spec("P2", "C9")
@pytest.mark.parametrize("flag", ["--mmr", "--redundancy-filter"])
def test_an_index_without_vectors_is_refused_and_never_just_cut(shell: Shell, tmp_path: Path, flag: str) -> None:
    indexes.write(tmp_path / "docs", TEXTS)
    assert shell("ingest", "docs").code == 0
    refused = shell("query", "oak", flag)
    assert refused.code == 3
    assert "the index has no vectors" in refused.err
    assert refused.out == ""


@pytest.mark.spec("P2", "R8")
def test_an_embedder_that_fails_at_query_time_leaves_the_order(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes.write(tmp_path / "docs", TEXTS)
    assert shell("ingest", "docs").code == 0
    plain = [hit["document_id"] for hit in shell("query", "oak elm", "--mode", "keyword", "--json").json()["hits"]]
    monkeypatch.setenv("RAGCLI_EMBEDDING__RETRIES", "0")
    monkeypatch.setenv("RAGCLI_RETRIEVAL__MMR_RELEVANCE", "cosine")
    service.rule = refusing("", 503)
    found = shell("query", "oak elm", "--mode", "keyword", "--mmr", "--lambda", "0", "--json")
    assert found.code == 0
    assert [hit["document_id"] for hit in found.json()["hits"]] == plain
    assert any("mmr failed" in warning and "503" in warning for warning in found.json()["warnings"])
