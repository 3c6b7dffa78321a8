"""D23: all scores were 0, since the form of the answer was not known. Each form is; an unknown one is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cases.reranking import four_oaks, reranked, serving
from tests.commands import Shell


def items(texts: Sequence[str], name: str) -> list[dict[str, Any]]:
    return [{"index": at, name: len(text) / 100} for at, text in enumerate(texts)]


FORMS = [
    ("/v1/rerank", lambda texts: {"results": items(texts, "relevance_score")}),
    ("/rerank", lambda texts: {"results": items(texts, "relevance_score")}),
    ("/score", lambda texts: {"data": items(texts, "score")}),
    ("/rerank", lambda texts: items(texts, "score")),
]


@pytest.mark.spec("P4")
@pytest.mark.parametrize(("path", "answer"), FORMS)
def test_every_known_form(shell: Shell, tmp_path: Path, path: str, answer: Any) -> None:
    four_oaks(shell, tmp_path)
    with serving(answer, path=path) as service:
        found = reranked(shell, service).json()
    assert [hit["document_id"] for hit in found["hits"]] == ["d.md", "c.md", "b.md", "a.md"]
    assert all(hit["score"] > 0 for hit in found["hits"])
    assert found["warnings"] == []


@pytest.mark.spec("P4", "R8")
def test_an_unknown_form_is_quoted_and_the_order_before_it_stands(shell: Shell, tmp_path: Path) -> None:
    four_oaks(shell, tmp_path)
    odd = {"rankings": [["a", 0.5]], "more": "x" * 500}
    with serving(lambda texts: odd) as service:
        found = reranked(shell, service)
    assert found.code == 0
    assert [hit["document_id"] for hit in found.json()["hits"]] == ["a.md", "b.md", "c.md", "d.md"]
    (warning,) = found.json()["warnings"]
    assert "rankings" in warning
    assert "x" * 100 in warning
    assert "x" * 300 not in warning
