"""A service's answers for passages that hold their own score: "0.25 whatever" is answered by 0.25."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.services import Received, Reply, Rule, error

PASSAGES = ["0.25 oak", "0.75 elm", "0.5 ash"]
SCORES = (0.25, 0.75, 0.5)


def passages_of(request: Received) -> list[str]:
    """Whatever they are called."""
    body = request.body
    passages: list[str] = body.get("documents") or body.get("texts") or body.get("text_2") or []
    return passages


def items(passages: Sequence[str], name: str = "relevance_score") -> list[dict[str, Any]]:
    """Best first, as services send them."""
    scored = [{"index": index, name: float(text.split()[0])} for index, text in enumerate(passages)]
    return sorted(scored, key=lambda item: -float(item[name]))


def results(request: Received) -> Reply:
    return Reply(body={"results": items(passages_of(request))})


def at(path: str, rule: Rule = results) -> Rule:
    """Answers at one path alone."""
    return lambda request: rule(request) if request.path == path else error(404, "Not Found")


def taking(seconds: float, move: Callable[[float], None], rule: Rule = results) -> Rule:
    """Each answer takes so many seconds of a clock that `move` moves on."""

    def slow(request: Received) -> Reply:
        move(seconds)
        return rule(request)

    return slow
