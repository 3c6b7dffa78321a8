"""Rerankers are tested against a scripted service on 127.0.0.1, past any proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models.clock import Time
from tests.services import EmbeddingService

KEY_VARIABLES = ("COHERE_API_KEY", "JINA_API_KEY", "VLLM_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture(autouse=True)
def nobodys_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def service(time: Time) -> Iterator[EmbeddingService]:
    with EmbeddingService(now=lambda: time.at) as running:
        yield running
