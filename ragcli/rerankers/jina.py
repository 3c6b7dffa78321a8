"""Jina's rerankers: POST /v1/rerank {model, query, documents, top_n, return_documents} (jina.ai, Reranker API)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ragcli import config
from ragcli.errors import UsageError
from ragcli.models.http import Clock
from ragcli.models.place import ModelPlace
from ragcli.options import RerankSettings, Settings
from ragcli.rerankers.service import Requests, split_url
from ragcli.types import Listener, Relevance, ignore_event

URL = "https://api.jina.ai"
MODEL = "jina-reranker-v2-base-multilingual"
KEY = "JINA_API_KEY"
MOST = 1000  # passages in a request
KEY_HINT = f"check {KEY}, or the variable that rerank.key_variable names"
HINTS = {
    0: "check rerank.base_url, or raise rerank.timeout_seconds",
    401: KEY_HINT,
    403: KEY_HINT,
    404: "check rerank.model and rerank.base_url",
}


class JinaReranker:
    """A Reranker. Connects when it is first asked."""

    def __init__(
        self,
        settings: RerankSettings,
        key: str,
        *,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        listen: Listener = ignore_event,
    ) -> None:
        """Raises: UsageError: the URL or the key can't be used."""
        url, version = split_url(settings.base_url or URL)
        self._model = settings.model or MODEL
        self._path = f"{version or 'v1'}/rerank"
        self._requests = Requests(self.name, url, key, settings, hints=HINTS, clock=clock, listen=listen)

    @classmethod
    def open(cls, settings: Settings, place: ModelPlace, listen: Listener) -> JinaReranker:  # noqa: ARG003 - no files
        """The one that the settings mean. Raises: UsageError: there is no key."""
        key = config.service_key("rerank", settings.rerank.key_variable, KEY, environ=os.environ)
        if key is None:
            raise UsageError(f"rerank.reranker = jina wants a key, and {KEY} is not set", f"set {KEY}")
        return cls(settings.rerank, key, listen=listen)

    def __repr__(self) -> str:
        return f"JinaReranker({self._model!r})"

    @property
    def name(self) -> str:
        """`jina:` and the model."""
        return f"jina:{self._model}"

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        """Raises: RemoteError: the service failed. RagcliError: the time is over."""
        return self._requests.judge(query, passages, self._ask)

    def close(self) -> None:
        """Ends the connections, for good."""
        self._requests.close()

    def _ask(self, query: str, passages: Sequence[str]) -> list[float]:
        sent = passages[:MOST]
        body = {"model": self._model, "query": query, "documents": sent, "top_n": len(sent), "return_documents": False}
        return self._requests.scores(self._path, body, len(sent))
