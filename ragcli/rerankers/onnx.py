"""A cross-encoder that runs here, as an ONNX network (spec P4, M8): `rerank.model` is its folder or its name.

Its scores are logits. What it could not read to the end is told. The network is `models/cross_encoder.py`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ragcli.models.cross_encoder import CrossEncoder, Pair
from ragcli.models.place import ModelPlace
from ragcli.options import Settings
from ragcli.rerankers.time_budget import TimeBudget
from ragcli.types import Event, Listener, Relevance, ignore_event

STAGE = "reranking"


class OnnxReranker:
    """A Reranker. Opens its files when it is first asked."""

    def __init__(
        self,
        model: str,
        encoder: CrossEncoder,
        time_budget_seconds: float | None = None,
        *,
        listen: Listener = ignore_event,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model, self._encoder, self._listen = model, encoder, listen
        self._budget = TimeBudget(time_budget_seconds, now)

    @classmethod
    def open(cls, settings: Settings, place: ModelPlace, listen: Listener) -> OnnxReranker:
        """The one that the settings mean. Raises: as `CrossEncoder.open`."""
        own = settings.rerank
        return cls(own.model or "", CrossEncoder.open(settings, place), own.time_budget_seconds, listen=listen)

    def __repr__(self) -> str:
        return f"OnnxReranker({self._model!r})"

    @property
    def name(self) -> str:
        """`onnx:` and the model."""
        return f"onnx:{self._model}"

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        """Logits, each the same whatever passages stand beside it. Raises: RagcliError: it fails, or time is over."""
        if not passages:
            return Relevance((), logits=True)
        self._budget.start()
        pairs = self._encoder.pairs(query, passages)
        # long ones first: else one thread works on when the others are done
        order = sorted(range(len(pairs)), key=lambda at: -len(pairs[at].ids))
        scores: dict[int, float] = {}

        def work(pair: Pair) -> float:
            self._budget.check(len(scores), len(pairs))
            return self._encoder.logit(pair)

        self._tell(0, len(pairs))
        found = self._encoder.each(work, [pairs[at] for at in order])
        for at, score in zip(order, found, strict=True):
            scores[at] = score
            self._tell(len(scores), len(pairs))
        return Relevance(tuple(scores[at] for at in range(len(pairs))), logits=True, warnings=self._cut(pairs))

    def close(self) -> None:
        """Ends its threads."""
        self._encoder.close()

    def _tell(self, done: int, total: int) -> None:
        self._listen(Event(stage=STAGE, done=done, total=total, unit="passages"))

    def _cut(self, pairs: Sequence[Pair]) -> tuple[str, ...]:
        lost = [pair.lost for pair in pairs if pair.lost]
        if not lost:
            return ()
        return (
            f"{len(lost)} of {len(pairs)} passages, with the query, are longer than the reranker's window of "
            f"{self._encoder.window} tokens: {sum(lost):,} tokens at their ends were not judged",
        )
