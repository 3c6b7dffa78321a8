"""What the rerankers of remote services share: passages in, one request after the other, scores out.

Owns the order of the requests, progress, the time budget, and what is said of an answer that can't be used. How a
service is asked is its own file's; how HTTP is spoken is `models/http.py`'s.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragcli.errors import RemoteError
from ragcli.models.http import Clock, HttpClient, Limits, Service
from ragcli.models.windows import whole
from ragcli.options import RerankSettings
from ragcli.rerankers.replies import Unplaceable, has_logits, placed
from ragcli.rerankers.time_budget import TimeBudget
from ragcli.types import Event, Listener, Relevance, ignore_event

STAGE = "reranking"
# of a base URL whose host is no part of it; a query may follow
_END = re.compile(r"(?:(?<!/)/(v[12]))?(?:(?<!/)/rerank)?/*(?=\?|$)")

# The scores of the first of these passages: as many as one request takes.
Ask = Callable[[str, Sequence[str]], list[float]]


def split_url(base_url: str) -> tuple[str, str]:
    """A base URL without the version, or the whole path, that it may end in; and that version: "v1", "v2" or ""."""
    found = _END.search(base_url.strip())
    assert found  # the end itself is always found
    return f"{base_url.strip()[: found.start()]}{base_url.strip()[found.end() :]}", found[1] or ""


class Requests:
    """The requests to one service, which connects at the first one."""

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        settings: RerankSettings,
        *,
        hints: Mapping[int, str],
        clock: Clock = Clock(),  # noqa: B008 - frozen
        listen: Listener = ignore_event,
    ) -> None:
        """Raises: UsageError: the URL or the key can't be used."""
        self._name = name
        self._listen = listen
        self._budget = TimeBudget(settings.time_budget_seconds, clock.now)
        service = Service(name=name, base_url=base_url, key=key, hints=hints)
        limits = Limits(settings.timeout_seconds, settings.retries, settings.requests_per_minute)
        self._client = HttpClient(service, limits, clock=clock, listen=listen, left=self._budget.left)

    def judge(self, query: str, passages: Sequence[str], ask: Ask) -> Relevance:
        """A score for each passage, asked for until all have one.

        Raises: RemoteError: the service failed, or its answer can't be used. RagcliError: the time is over.
        """
        texts = [whole(passage) for passage in passages]
        scores: list[float] = []
        self._budget.start()
        while len(scores) < len(texts):
            self._tell(len(scores), len(texts))
            scores += self._in_time(ask, whole(query), texts, len(scores))
        self._tell(len(scores), len(texts))
        return Relevance(tuple(scores), has_logits(scores))

    def scores(self, path: str, body: Mapping[str, object], expected: int) -> list[float]:
        """The scores of `expected` passages that the service answers to POST `path`. Raises: RemoteError."""
        answer = self._client.post(path, body)
        try:
            return placed(answer, expected)
        except Unplaceable as error:
            raise RemoteError(f"{self._name}: {error}: {self._quoted(answer)}") from None

    def close(self) -> None:
        """Ends the connections, for good."""
        self._client.close()

    def _in_time(self, ask: Ask, query: str, texts: Sequence[str], judged: int) -> list[float]:
        """The scores of the first ones after those that are `judged`."""
        self._budget.check(judged, len(texts))
        try:
            return ask(query, texts[judged:])
        except RemoteError:
            self._budget.check(judged, len(texts))  # a time-out may have been cut short
            raise

    def _tell(self, done: int, total: int) -> None:
        if total:
            self._listen(Event(stage=STAGE, done=done, total=total, unit="passages"))

    def _quoted(self, answer: Any) -> str:
        return self._client.quoted(json.dumps(answer, ensure_ascii=False))
