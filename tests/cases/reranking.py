"""Four documents and a reranking service for the cases: what the service answers is each case's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests import indexes
from tests.commands import Outcome, Shell
from tests.services import EmbeddingService, Received, Reply

TEXTS = {"a.md": "oak", "b.md": "oak and elm", "c.md": "oak and elm and ash", "d.md": "oak and elm and ash and fir"}
ASKED = ("query", "oak", "--mode", "keyword", "--json", "--explain")
Answer = Callable[[Sequence[str]], Any]  # passages -> the body of the answer


def four_oaks(shell: Shell, folder: Path) -> None:
    """The index of the four documents, which "oak" finds in the order of their names."""
    indexes.write(folder / "docs", TEXTS)
    assert shell("ingest", "docs").code == 0


def serving(answer: Answer, *, path: str = "/v1/rerank") -> EmbeddingService:
    """A service that answers at `path` alone, whatever its passages are called."""

    def rule(request: Received) -> Reply:
        if request.path != path:
            return Reply(404, {"error": "no such path"})
        body = request.body
        return Reply(body=answer(body.get("documents") or body.get("texts") or body.get("text_2")))

    return EmbeddingService(rule=rule)


def reranked(shell: Shell, service: EmbeddingService, *flags: str) -> Outcome:
    """The query, reranked by that service."""
    import os

    base = service.url.removesuffix("/v1")
    os.environ["RAGCLI_RERANK__BASE_URL"] = base
    try:
        return shell(*ASKED, "--reranker", "vllm", *flags)
    finally:
        del os.environ["RAGCLI_RERANK__BASE_URL"]


def scored(scores: Sequence[float]) -> list[dict[str, Any]]:
    """Items of an answer, the best first, as services give them."""
    items = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return sorted(items, key=lambda item: -item["relevance_score"])
