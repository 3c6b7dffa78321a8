"""A34: a file whose embedding fails is told and tried again; the others are not embedded a second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, embeddings, refusing


@pytest.mark.spec("M11", "C9")
def test_the_file_is_marked_and_tried_again_and_the_others_are_left(
    shell: Shell, service: EmbeddingService, tmp_path: Path
) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak", "b.txt": "a plum with a stone", "c.txt": "an elm"})
    service.rule = refusing("plum")
    first = shell("ingest", "docs")
    assert first.code == 4
    assert "b.txt: " in first.err
    assert "can't embed plum" in first.err
    assert "2 embedded, 1 without a vector" in first.err
    found = shell("query", "plum stone", "--mode", "keyword", "--json").json()["hits"]
    assert found[0]["document_id"] == "b.txt"  # its words can be found

    service.requests.clear()
    second = shell("ingest", "docs")
    assert second.code == 4
    assert any("plum" in text for text in service.texts)
    assert not any("oak" in text or "elm" in text for text in service.texts)

    service.rule = embeddings
    service.requests.clear()
    third = shell("ingest", "docs", "--json")
    assert third.code == 0
    assert (third.json()["embedded"], third.json()["unembedded"]) == (1, 0)
    assert len(service.texts) == 1
    service.requests.clear()
    assert shell("ingest", "docs").code == 0
    assert service.texts == []


@pytest.mark.spec("M11", "R8")
def test_a_service_that_is_down_costs_no_document_and_the_next_ingest_completes_them(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_EMBEDDING__RETRIES", "0")
    docs = indexes.write(tmp_path / "docs", {"a.txt": "an oak", "b.txt": "a plum"})
    assert shell("ingest", "docs").code == 0
    indexes.write(docs, {"c.txt": "a new elm", "d.txt": "a new ash"})
    service.rule = refusing("", 503)

    down = shell("ingest", "docs")
    assert down.code == 4
    assert "2 chunks have no vector yet" in down.err

    found = shell("query", "elm", "--json")
    assert found.code == 0
    assert found.json()["hits"][0]["document_id"] == "c.txt"
    assert "503" in found.json()["warnings"][-1]
    assert "2 of 4 chunks have no vector yet" in found.json()["warnings"][0]
    assert shell("query", "elm", "--mode", "vector").code == 5

    service.rule = embeddings
    done = shell("ingest", "docs")
    assert done.code == 0
    assert "2 embedded" in done.err
    assert shell("query", "elm", "--json").json()["warnings"] == []


@pytest.mark.spec("M11", "C9")
def test_a_service_that_can_not_be_reached_at_first_makes_no_index(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_EMBEDDING__RETRIES", "0")
    service.rule = refusing("", 401)
    indexes.write(tmp_path / "docs", {"a.txt": "an oak"})
    refused = shell("ingest", "docs")
    assert refused.code == 5
    assert "401" in refused.err
    assert not (tmp_path / ".ragcli" / "index.db").exists()
