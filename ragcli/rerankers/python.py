"""The user's own reranker: `python:module:attribute` (spec P4).

The attribute is a class (made without arguments) or an object with `judge(query, passages)`, or a plain function of the
two. What comes back is a `Relevance`, or a number for each passage, None where there is no judgement; numbers that do
not all lie between 0 and 1 count as logits. Whether a settings file may ask for that is `config`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from ragcli import registry
from ragcli.errors import ConfigError, RagcliError, shortened
from ragcli.models.place import ModelPlace
from ragcli.options import Settings
from ragcli.rerankers.replies import has_logits
from ragcli.types import Listener, Relevance

PREFIX = "python:"


class PythonReranker:
    """A Reranker of foreign code, whose errors become ours."""

    def __init__(self, name: str, found: object) -> None:
        """`found`: what `name` means. Raises: RagcliError: the class can't be made, or it is nothing that judges."""
        self._name = name
        self._found: Any = self._run(found) if isinstance(found, type) else found
        if not (callable(self._found) or hasattr(self._found, "judge")):
            raise ConfigError(f"reranker {name}: it has no judge, and is no function of query and passages")

    @classmethod
    def open(cls, settings: Settings, place: ModelPlace, listen: Listener) -> PythonReranker:  # noqa: ARG003 - its own
        """The one that the settings mean.

        Raises: ConfigError: there is none of this name. RagcliError: importing or making it fails.
        """
        name = settings.rerank.reranker
        target = name.removeprefix(PREFIX)
        if ":" not in target:
            raise ConfigError(f"reranker {name}: not of the form {PREFIX}module:attribute")
        try:
            found = registry.resolve("reranker", target)
        except RagcliError:
            raise
        except Exception as error:  # whatever the module does when it is imported
            raise _error(target, "importing it", error) from error
        return cls(target, found)

    def __repr__(self) -> str:
        return f"PythonReranker({self._name!r})"

    @property
    def name(self) -> str:
        """`python:module:attribute`."""
        return f"{PREFIX}{self._name}"

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        """Raises: RagcliError: the code fails, or gives no score for each passage."""
        if not passages:
            return Relevance(())
        judge = getattr(self._found, "judge", self._found)
        found = self._relevance(self._run(judge, query, list(passages)))
        if len(found.scores) != len(passages):
            raise RagcliError(f"reranker {self._name}: {len(found.scores)} scores for {len(passages)} passages")
        return found

    def close(self) -> None:
        """Closes what it wraps, where that can be closed."""
        close = getattr(self._found, "close", None)
        if callable(close):
            self._run(close)

    def _run(self, code: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return code(*arguments)
        except RagcliError:
            raise
        except Exception as error:  # foreign code may raise anything
            raise _error(self._name, f"{getattr(code, '__name__', 'it')}", error) from error

    def _relevance(self, found: Any) -> Relevance:
        if isinstance(found, Relevance):
            self._check(found.scores)
            return found
        scores = tuple(self._run(_numbers, found))
        self._check(scores)
        return Relevance(scores, has_logits([score for score in scores if score is not None]))

    def _check(self, scores: Sequence[float | None]) -> None:
        wrong = next((score for score in scores if score is not None and not isfinite(score)), None)
        if wrong is not None:
            raise RagcliError(f"reranker {self._name}: a score of {wrong} is none")


def _numbers(found: Any) -> list[float | None]:
    return [None if score is None else float(score) for score in found]


def _error(name: str, what: str, error: Exception) -> RagcliError:
    said = shortened(" ".join(str(error).split()))
    return RagcliError(f"reranker {name}: {what} raised {type(error).__name__}: {said}")
