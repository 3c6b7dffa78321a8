"""A server of one's own that reranks: vLLM, llama.cpp, Infinity, text-embeddings-inference (TEI) and their like.

They differ in path and words, so the ways are tried in turn until the server knows one, which is remembered::

    POST /v1/rerank, /rerank, /v2/rerank    {model, query, documents, top_n}
    POST /score                             {model, text_1, text_2}             vLLM
    POST the same path                      {query, texts}                      TEI, which says that it misses `texts`

A path is not known where the status is 404 or 405.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ragcli import config
from ragcli.errors import UsageError
from ragcli.models.http import Clock, StatusError
from ragcli.models.place import ModelPlace
from ragcli.options import RerankSettings, Settings
from ragcli.rerankers.service import Requests, split_url
from ragcli.types import Listener, Relevance, ignore_event

KEY = "VLLM_API_KEY"
MOST = 1000  # passages in a request
MOST_TEXTS = 32  # the same of TEI, whose own default it is (--max-client-batch-size)
KEY_HINT = f"check {KEY}, or the variable that rerank.key_variable names"
HINTS = {0: "check rerank.base_url, or raise rerank.timeout_seconds", 401: KEY_HINT, 403: KEY_HINT}
UNKNOWN = frozenset({404, 405})
REFUSED = frozenset({400, 422})
# `missing field `texts`` of TEI, `"loc": ["body", "texts"]` of those who copy it
_MISSES_TEXTS = re.compile(r"[`'\"]texts[`'\"]")


class Way(msgspec.Struct, frozen=True):
    """One way to ask: a path, what is sent there, and how many passages at once."""

    path: str
    body: Callable[[str | None, str, Sequence[str]], dict[str, object]]
    most: int = MOST


def documents(model: str | None, query: str, passages: Sequence[str]) -> dict[str, object]:
    """The body of most."""
    return {**_named(model), "query": query, "documents": passages, "top_n": len(passages)}


def pairs(model: str | None, query: str, passages: Sequence[str]) -> dict[str, object]:
    """The body of vLLM's /score."""
    return {**_named(model), "text_1": query, "text_2": passages}


def texts(_: str | None, query: str, passages: Sequence[str]) -> dict[str, object]:
    """The body of TEI, which serves one model, and refuses what is longer than its window unless told to cut it."""
    return {"query": query, "texts": passages, "truncate": True}


def _named(model: str | None) -> Mapping[str, object]:
    return {"model": model} if model else {}


class VllmReranker:
    """A Reranker. Connects when it is first asked."""

    def __init__(
        self,
        settings: RerankSettings,
        key: str | None,
        *,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        listen: Listener = ignore_event,
    ) -> None:
        """Raises: UsageError: there is no URL, or it or the key can't be used."""
        if not settings.base_url:
            raise UsageError("rerank.reranker = vllm wants rerank.base_url", "such as http://127.0.0.1:8000")
        url, self._version = split_url(settings.base_url)
        self._model = settings.model
        self._way: Way | None = None
        self._requests = Requests(self.name, url, key, settings, hints=HINTS, clock=clock, listen=listen)

    @classmethod
    def open(cls, settings: Settings, place: ModelPlace, listen: Listener) -> VllmReranker:  # noqa: ARG003 - no files
        """The one that the settings mean. Raises: UsageError: there is no URL."""
        key = config.service_key("rerank", settings.rerank.key_variable, KEY, environ=os.environ)
        return cls(settings.rerank, key, listen=listen)

    def __repr__(self) -> str:
        return f"VllmReranker({self._model!r})"

    @property
    def name(self) -> str:
        """`vllm`, and the model where one is named."""
        return f"vllm:{self._model}" if self._model else "vllm"

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        """Raises: RemoteError: the service failed. RagcliError: the time is over."""
        return self._requests.judge(query, passages, self._ask)

    def close(self) -> None:
        """Ends the connections, for good."""
        self._requests.close()

    def _ask(self, query: str, passages: Sequence[str]) -> list[float]:
        if self._way is not None:
            return self._by(self._way, query, passages)
        unknown: list[StatusError] = []
        for way in self._ways():
            try:
                return self._by_new(way, query, passages)
            except StatusError as error:
                if error.status not in UNKNOWN:
                    raise
                unknown.append(error)
        raise self._no_way(unknown[0])  # the first may say that there is no such model

    def _by_new(self, way: Way, query: str, passages: Sequence[str]) -> list[float]:
        """As `_by`, in the words of TEI where the server wants those. What works is remembered."""
        try:
            scores = self._by(way, query, passages)
        except StatusError as error:
            if error.status not in REFUSED or not _MISSES_TEXTS.search(error.body):
                raise
            way = Way(way.path, texts, MOST_TEXTS)
            scores = self._by(way, query, passages)
        self._way = way
        return scores

    def _by(self, way: Way, query: str, passages: Sequence[str]) -> list[float]:
        sent = passages[: way.most]
        return self._requests.scores(way.path, way.body(self._model, query, sent), len(sent))

    def _ways(self) -> list[Way]:
        """All there are, that of the base URL's own version first."""
        ways = [Way("v1/rerank", documents), Way("rerank", documents), Way("v2/rerank", documents)]
        ways.sort(key=lambda way: not (self._version and way.path.startswith(self._version)))
        return [*ways, Way("score", pairs)]

    def _no_way(self, error: StatusError) -> StatusError:
        tried = ", ".join(f"/{way.path}" for way in self._ways())
        hint = f"check rerank.base_url and rerank.model; tried {tried}"
        return StatusError(error.message, hint, status=error.status, body=error.body)
