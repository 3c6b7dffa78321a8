"""Maximal Marginal Relevance: hits that are relevant and unlike each other (spec P2).

Carbonell & Goldstein, The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing Summaries, 1998:
each pick is the hit with the greatest λ · relevance - (1 - λ) · greatest cosine with one picked before. The first pick
is the most relevant one, whatever λ; λ = 1 is the order by relevance, λ = 0 the most different that can be had.

What is relevant: by `score`, what the ranking so far says: a cosine as it is, any other score scaled to 0..1 over the
candidates (a fused score has another scale than the cosines it is weighed against); by `cosine`, the cosine with the
query, whatever words found. A hit without a vector is like nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from ragcli.errors import OptionError
from ragcli.options import MmrRelevance
from ragcli.stages import cosines
from ragcli.types import Corpus, Drop, Hit, Ranking

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "mmr"
KIND = "mmr"


class Pick(msgspec.Struct, frozen=True):
    """A position, its relevance, and what it was most like among those picked before it (None: it was the first).

    Of those that were not picked: what it was most like among all picked.
    """

    position: int
    relevance: float
    twin: int | None
    likeness: float

    def parts(self, lambda_: float) -> dict[str, float]:
        """What its value is the sum of."""
        return {"relevance": lambda_ * self.relevance, "likeness": (lambda_ - 1) * self.likeness + 0.0}


class Picks(msgspec.Struct, frozen=True):
    """In the order in which they were picked; and the others, in their own order."""

    picked: tuple[Pick, ...]
    others: tuple[Pick, ...]

    @property
    def order(self) -> list[int]:
        """The positions that were picked."""
        return [pick.position for pick in self.picked]


def mmr(query: Any, vectors: Any, k: int, lambda_: float = 0.5) -> Picks:
    """The `k` best of `vectors`, (n, dimension), for the vector `query`; relevance is their cosine. Ties: the earlier.

    Raises: OptionError for `lambda_` outside 0..1 or `k` below 1; ValueError for what are no such vectors.
    """
    rows = cosines.unit_rows(vectors)
    if not len(rows):
        _check(k, lambda_)
        return Picks((), ())
    relevance = cosines.with_row(rows, cosines.unit_rows([query])[0])
    return picks(relevance.tolist(), rows, k, lambda_)


def picks(
    relevance: Sequence[float],
    rows: NDArray[np.float64],
    k: int,
    lambda_: float = 0.5,
    is_enough: Callable[[int], bool] = lambda position: False,  # noqa: ARG005
) -> Picks:
    """The same by any relevance: one number a row of `rows`, (n, dimension), whose rows have length 1 or 0.

    `is_enough(position)` is told each pick, and ends the picking before `k` are there when it returns True.
    Each pick costs one matrix-vector product. Raises: OptionError.
    """
    import numpy as np

    _check(k, lambda_)
    values = lambda_ * np.asarray(relevance, np.float64)
    likeness = np.full(len(values), -np.inf)
    columns: list[NDArray[np.float64]] = []  # of each pick: the cosine of every row with it
    order: list[int] = []
    while len(order) < min(k, len(values)):
        position = int(np.argmax(values - (1 - lambda_) * likeness)) if order else int(np.argmax(relevance))
        order.append(position)
        values[position] = -np.inf
        columns.append(cosines.with_row(rows, rows[position]))
        np.maximum(likeness, columns[-1], out=likeness)
        if is_enough(position):
            break
    return _told(relevance, order, np.array(columns))


def _told(relevance: Sequence[float], order: Sequence[int], columns: NDArray[np.float64]) -> Picks:
    """With what each was most like: a pick among those before it, the others among all."""
    first = Pick(order[0], relevance[order[0]], None, 0.0)
    picked = (_pick(at, relevance, order[:number], columns[:number, at]) for number, at in enumerate(order) if number)
    left = sorted(set(range(len(relevance))) - set(order))
    return Picks((first, *picked), tuple(_pick(at, relevance, order, columns[:, at]) for at in left))


def _pick(position: int, relevance: Sequence[float], earlier: Sequence[int], likeness: NDArray[np.float64]) -> Pick:
    nearest = int(likeness.argmax())
    return Pick(position, relevance[position], earlier[nearest], float(likeness[nearest]))


def _check(k: int, lambda_: float) -> None:
    if not (isfinite(lambda_) and 0 <= lambda_ <= 1):
        raise OptionError("retrieval.mmr_lambda", lambda_, "0 to 1")
    if k < 1:
        raise OptionError("retrieval.mmr_keep", k, "1 or more")


class Mmr(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Picks `picks` of the first `candidates` hits; their score becomes their value at the moment they were picked.

    `by_parent`: picks until that many parents are among them. Raises: OptionError for a value out of range.
    """

    picks: int = 5
    candidates: int = 15
    lambda_: float = 0.5
    relevance: MmrRelevance = "score"
    by_parent: bool = False

    def __post_init__(self) -> None:
        _check(self.picks, self.lambda_)
        if self.candidates < 1:
            raise OptionError("retrieval.mmr_candidate_count", self.candidates, "1 or more")

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The picks in their order. Raises: as `Corpus.vectors`, `query_vector` and `parents`."""
        if not ranking.hits:
            return ranking
        hits = ranking.hits[: self.candidates]
        rows = cosines.unit_rows(corpus.vectors(hits))
        found = picks(self._relevance(hits, rows, corpus), rows, *self._bounds(hits, corpus))
        kept = tuple(self._kept(hits, pick) for pick in found.picked)
        dropped = (*(self._drop(hits, pick) for pick in found.others), *self._beyond(ranking.hits))
        return Ranking(kept, ranking.dropped + dropped, ranking.warnings)

    def _relevance(self, hits: Sequence[Hit], rows: NDArray[np.float64], corpus: Corpus) -> list[float]:
        if self.relevance == "cosine":
            query = cosines.unit_rows([corpus.query_vector()])[0]
            found: list[float] = cosines.with_row(rows, query).tolist()
            return found
        scores = [hit.score for hit in hits]
        if all(hit.score_kind == "cosine" for hit in hits):
            return [round(score, cosines.DECIMALS) for score in scores]
        low, high = min(scores), max(scores)
        return [(score - low) / (high - low) if high > low else 1.0 for score in scores]

    def _bounds(self, hits: Sequence[Hit], corpus: Corpus) -> tuple[int, float, Callable[[int], bool]]:
        """How many to pick at most, λ, and when there are enough."""
        if not self.by_parent:
            return self.picks, self.lambda_, lambda position: False  # noqa: ARG005
        parents = [(chunk.document_id, chunk.index) for chunk in corpus.parents(hits)]
        seen: set[tuple[str, int]] = set()

        def is_enough(position: int) -> bool:
            seen.add(parents[position])
            return len(seen) >= self.picks

        return len(hits), self.lambda_, is_enough

    def _kept(self, hits: Sequence[Hit], pick: Pick) -> Hit:
        return hits[pick.position].rescored(NAME, KIND, pick.parts(self.lambda_), self._note(hits, pick))

    def _note(self, hits: Sequence[Hit], pick: Pick) -> str:
        relevance = f"{_named(self.relevance, hits[pick.position])} {pick.relevance:.4f}"
        if pick.twin is None:
            return f"{relevance}; the first pick"
        return f"{relevance}; most like {_name(hits[pick.twin])}, cosine {pick.likeness:.4f}"

    def _drop(self, hits: Sequence[Hit], pick: Pick) -> Drop:
        value = sum(pick.parts(self.lambda_).values())
        note = self._note(hits, pick)
        return Drop(hits[pick.position], NAME, f"not picked at lambda {self.lambda_:g}: value {value:.4f} ({note})")

    def _beyond(self, hits: Sequence[Hit]) -> tuple[Drop, ...]:
        return tuple(
            Drop(hit, NAME, f"rank {rank}; MMR picks from the first {self.candidates}")
            for rank, hit in enumerate(hits[self.candidates :], self.candidates + 1)
        )


def _named(relevance: MmrRelevance, hit: Hit) -> str:
    if relevance == "cosine" or hit.score_kind == "cosine":
        return "cosine with the query"
    return f"{hit.score_kind} score, scaled,"


def _name(hit: Hit) -> str:
    return f"{hit.chunk.document_id}#{hit.chunk.index}"
