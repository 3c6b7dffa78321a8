"""D22: `document` is null in the answers of Cohere's v2, or not there at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.reranking import ASKED, four_oaks
from tests.commands import Shell
from tests.services import EmbeddingService, Received, Reply

KEY = "co-7f/secret"


@pytest.mark.spec("P4")
@pytest.mark.parametrize("more", [{"document": None}, {}])
def test_the_texts_are_ours(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, None]
) -> None:
    four_oaks(shell, tmp_path)

    def rule(request: Received) -> Reply:
        assert request.path == "/v2/rerank"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        count = len(request.body["documents"])
        assert request.body["top_n"] == count
        return Reply(body={"results": [{"index": n, "relevance_score": n / 10, **more} for n in range(count)]})

    with EmbeddingService(rule=rule) as service:
        monkeypatch.setenv("RAGCLI_RERANK__BASE_URL", service.url.removesuffix("/v1"))
        monkeypatch.setenv("COHERE_API_KEY", KEY)
        found = shell(*ASKED, "--reranker", "cohere")
    assert [hit["document_id"] for hit in found.json()["hits"]] == ["d.md", "c.md", "b.md", "a.md"]
    assert KEY not in found.out + found.err


@pytest.mark.spec("P4", "C9")
@pytest.mark.parametrize(("reranker", "variable"), [("cohere", "COHERE_API_KEY"), ("jina", "JINA_API_KEY")])
def test_without_a_key_the_variable_is_named(shell: Shell, tmp_path: Path, reranker: str, variable: str) -> None:
    four_oaks(shell, tmp_path)
    refused = shell(*ASKED, "--reranker", reranker)
    assert refused.code == 2
    assert variable in refused.err
