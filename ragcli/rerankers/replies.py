"""The scores in a service's answer, in whichever of the known forms it comes (spec P4).

    {"results": [{"index", "relevance_score"}]}     Cohere, Jina, vLLM (/rerank), llama.cpp
    {"data": [{"index", "score"}]}                  vLLM (/score)
    [{"index", "score"}]                            text-embeddings-inference

A score belongs to the passage that its `index` names, never to the one at its place: services sort by score. What else
an item holds (a `document`, or null for it) is not looked at. Both names of a score are taken in every form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

SCORES = ("relevance_score", "score")


class Unplaceable(Exception):
    """An answer that can't be matched to the passages; the message says why."""


def placed(answer: Any, expected: int) -> list[float]:
    """The scores of `expected` passages, in the passages' order. Raises: Unplaceable."""
    scores: dict[int, float] = {}
    for index, score in _scored(_items(answer)):
        if not 0 <= index < expected:
            raise Unplaceable(f"an `index` of {index} for {expected} passages")
        if index in scores:
            raise Unplaceable(f"the `index` {index} twice")
        scores[index] = score
    if len(scores) < expected:
        missing = next(index for index in range(expected) if index not in scores)
        raise Unplaceable(f"{len(scores)} scores for {expected} passages, none with `index` {missing}")
    return [scores[index] for index in range(expected)]


def has_logits(scores: Sequence[float]) -> bool:
    """Whether these have no bounds: those that all lie between 0 and 1 are shown as they are."""
    return not all(0 <= score <= 1 for score in scores)


def _items(answer: Any) -> list[Any]:
    if isinstance(answer, dict):
        answer = next((answer[key] for key in ("results", "data") if isinstance(answer.get(key), list)), None)
    if not isinstance(answer, list):
        raise Unplaceable("an answer of no known form")
    return answer


def _scored(items: Sequence[Any]) -> Iterator[tuple[int, float]]:
    for item in items:
        if not isinstance(item, dict) or type(item.get("index")) is not int:
            raise Unplaceable("an answer of no known form")
        yield item["index"], _number(next((item[key] for key in SCORES if key in item), None))


def _number(score: object) -> float:
    if isinstance(score, int | float) and not isinstance(score, bool):
        try:
            number = float(score)
        except OverflowError:  # a whole number of 309 digits and more
            number = float("inf")
        if isfinite(number):
            return number
    raise Unplaceable("a score that is no number")
