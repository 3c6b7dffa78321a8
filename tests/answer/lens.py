"""A lens on nothing: lower-case words, weights and vectors by hand, for the tests of answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from tests.services import unit, vector_of

Vector = Callable[[str], Sequence[float]]


def words(text: str) -> list[str]:
    """The words of the text, in lower case."""
    return re.findall(r"\w+", text.lower())


def hashed(text: str) -> list[float]:
    """The vector of a text by its words: texts that share words are near."""
    return unit(vector_of(text))


class FakeLens:
    """A `types.Lens`. `idf`: of a term that it lacks, 1. `texts`: idf comes of these, by the formula of BM25.

    `embed`: None = there are no vectors; what came is in `embedded`, a list a call.
    """

    def __init__(
        self,
        idf: Mapping[str, float] | None = None,
        *,
        texts: Sequence[str] = (),
        embed: Vector | None = None,
        terms: Callable[[str], list[str]] = words,
    ) -> None:
        self._idf, self._embed, self._terms = idf or {}, embed, terms
        self._texts = [set(terms(text)) for text in texts]
        self.embedded: list[list[str]] = []

    def terms(self, text: str) -> list[str]:
        return self._terms(text)

    def idf(self, terms: Sequence[str]) -> Mapping[str, float]:
        return {term: self._weight(term) for term in terms}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        if self._embed is None:
            return None
        self.embedded.append(list(texts))
        return np.asarray([self._embed(text) for text in texts], np.float32)

    def query_vector(self, text: str) -> NDArray[np.float32] | None:
        return None if self._embed is None else np.asarray(self._embed(text), np.float32)

    def problem(self) -> str:
        return ""

    def _weight(self, term: str) -> float:
        if not self._texts:
            return self._idf.get(term, 1.0)
        holding = sum(term in text for text in self._texts)
        return log(1 + (len(self._texts) - holding + 0.5) / (holding + 0.5))
