"""A31: a service that takes so many tokens at once gets them in batches; one that refuses gets half as many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService, limited_to


@pytest.mark.spec("M5")
@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize("batch_tokens", ["100000", "200"])
def test_a_limit_of_tokens_costs_no_document(
    shell: Shell,
    service: EmbeddingService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    batch_tokens: str,
) -> None:
    monkeypatch.setenv("RAGCLI_EMBEDDING__BATCH_TOKENS", batch_tokens)
    service.rule = limited_to(words=200, status=status)
    indexes.write(tmp_path / "docs", {f"{n}.txt": f"file{n} " + "word " * 60 for n in range(20)})
    report = shell("ingest", "docs", "--json")
    assert report.code == 0
    assert (report.json()["embedded"], report.json()["unembedded"]) == (20, 0)
    refused = sum(len(" ".join(request.texts).split()) > 200 for request in service.requests)
    assert refused == 0 if batch_tokens == "200" else refused > 0
