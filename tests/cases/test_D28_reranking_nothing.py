"""D28: reranking an empty result crashed. Nobody is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.reranking import four_oaks, scored, serving
from tests.commands import Shell


@pytest.mark.spec("P3")
def test_no_candidates_no_request(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four_oaks(shell, tmp_path)
    with serving(lambda texts: {"results": scored([0.5] * len(texts))}) as service:
        monkeypatch.setenv("RAGCLI_RERANK__BASE_URL", service.url)
        found = shell("query", "kestrel", "--mode", "keyword", "--reranker", "vllm", "--json")
    assert found.code == 0
    assert found.json()["hits"] == []
    assert service.requests == []
