"""Reranking: a model that reads query and passage together judges the candidates anew (spec P3, P5, P6).

What is shown: logits by the logistic function, 1 / (1 + e^-x), all other scores as they are. What decides the order is
the score as it came, so that logits which are all shown as 1.0 keep their order (spec D25). By `reranker_only` the new
score replaces that of retrieval; `weighted_blend` adds the two, w · retrieval + (1 - w) · reranker, uncalibrated: sound
only where both lie between 0 and 1.
The model itself is a `types.Reranker`; cutting to `top_k` is the work of a later stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, isfinite

import msgspec

from ragcli.chunk.annotate import passage
from ragcli.errors import OptionError, RagcliError
from ragcli.options import FinalSelection
from ragcli.types import Corpus, Drop, Hit, Ranking, Relevance, Reranker

NAME = "rerank"
KIND, BLEND = "rerank", "blend"
UNBOUNDED = {"bm25", "zscore", "splade"}  # kinds of scores with no upper bound

Judge = Callable[[str, Sequence[str]], Sequence[float]]


class Judged(msgspec.Struct, frozen=True):
    """A passage's position, the score that is shown (None: no judgement), and the one that decides its place."""

    position: int
    score: float | None
    raw: float | None


def rerank(query: str, passages: Sequence[str], judge: Reranker | Judge) -> list[Judged]:
    """The passages in the order of the judgement, best first; equal ones in the order given.

    `judge`: a Reranker, or a function of query and passages that gives a score for each. What it has no judgement of
    keeps its place, and the others fill the rest. Raises: RagcliError: scores that don't fit the passages.
    """
    if not passages:
        return []
    return _ordered(_judged(query, passages, judge))


def shown(score: float, *, logit: bool) -> float:
    """A score as it is shown: a logit by the logistic function, in a form that can't overflow."""
    if not logit:
        return score
    return 1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score))


def _judged(query: str, passages: Sequence[str], judge: Reranker | Judge) -> Relevance:
    found = Relevance(tuple(judge(query, passages))) if callable(judge) else judge.judge(query, passages)
    if len(found.scores) != len(passages):
        raise RagcliError(f"{_name(judge)}: {len(found.scores)} scores for {len(passages)} passages")
    wrong = next((score for score in found.scores if score is not None and not isfinite(score)), None)
    if wrong is not None:
        raise RagcliError(f"{_name(judge)}: a score of {wrong} is none")
    return found


def _name(judge: Reranker | Judge) -> str:
    return str(getattr(judge, "name", "") or getattr(judge, "__name__", "") or type(judge).__name__)


def _ordered(found: Relevance) -> list[Judged]:
    """Those with a judgement by it, in the places that those without leave."""
    all_ = [
        Judged(at, None if raw is None else shown(raw, logit=found.logits), raw) for at, raw in enumerate(found.scores)
    ]
    best = iter(sorted((one for one in all_ if one.raw is not None), key=lambda one: -_number(one.raw)))
    return [one if one.raw is None else next(best) for one in all_]


def _number(value: float | None) -> float:
    assert value is not None
    return value


class Rerank(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Judges the first `candidates` hits by `reranker` and orders them anew.

    `min_score`: on the reranker's scale, as shown; what is below it is dropped. `skip_when_few`: with no more hits than
    `top_k` nothing is asked. Raises: OptionError for a value out of range.
    """

    reranker: Reranker
    top_k: int = 5
    candidates: int = 15
    min_score: float | None = None
    final: FinalSelection = "reranker_only"
    retrieval_weight: float = 0.65
    skip_when_few: bool = False

    def __post_init__(self) -> None:
        if not (isfinite(self.retrieval_weight) and 0 <= self.retrieval_weight <= 1):
            raise OptionError("rerank.retrieval_weight", self.retrieval_weight, "0 to 1")
        if self.candidates < 1:
            raise OptionError("retrieval.candidate_count", self.candidates, "1 or more")

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The hits in the order of their new scores. Raises: RagcliError: there is no judgement."""
        if not ranking.hits:
            return ranking
        if self.skip_when_few and len(ranking.hits) <= self.top_k:
            return self._skipped(ranking)
        hits = ranking.hits[: self.candidates]
        found = _judged(query, [passage(hit.chunk) for hit in hits], self.reranker)
        scored = self._scored(hits, found)
        is_below = [self.min_score is not None and score is not None and score < self.min_score for _, score in scored]
        kept = tuple(hit for (hit, _), below in zip(scored, is_below, strict=True) if not below)
        dropped = [self._low(*one) for one, below in zip(scored, is_below, strict=True) if below]
        dropped += self._beyond(ranking.hits)
        return Ranking(kept, (*ranking.dropped, *dropped), ranking.warnings + self._warnings(hits, found))

    def _skipped(self, ranking: Ranking) -> Ranking:
        note = f"not reranked: {len(ranking.hits)} candidates for a top_k of {self.top_k}"
        return msgspec.structs.replace(ranking, hits=tuple(hit.marked(NAME, note) for hit in ranking.hits))

    def _scored(self, hits: Sequence[Hit], found: Relevance) -> list[tuple[Hit, float | None]]:
        """The hits in the order of their new scores, each with what the reranker itself gave it."""
        judged = _ordered(found)
        ordered = [(self._rescored(hits[one.position], one, logit=found.logits), one.score) for one in judged]
        if self.final == "reranker_only":
            return ordered
        best = iter(sorted((one for one in ordered if one[1] is not None), key=lambda one: -one[0].score))
        return [one if one[1] is None else next(best) for one in ordered]

    def _rescored(self, hit: Hit, one: Judged, *, logit: bool) -> Hit:
        if one.score is None or one.raw is None:
            return hit.marked(NAME, "the reranker has no judgement of it: it keeps its place")
        note = f"logit {one.raw:.4f}" if logit else ""
        if self.final == "reranker_only":
            return hit.rescored(NAME, KIND, {"reranker": one.score}, note)
        weight, (score, kind) = self.retrieval_weight, hit.retrieved
        parts = {"retrieval": weight * score, "reranker": (1 - weight) * one.score}
        made = f"{weight:g} × {kind} {score:.4f} + {1 - weight:g} × reranker {one.score:.4f}"
        return hit.rescored(NAME, BLEND, parts, f"{made} ({note})" if note else made)

    def _low(self, hit: Hit, score: float | None) -> Drop:
        return Drop(hit, NAME, f"the reranker gives it {score:.4f}; rerank.min_score is {self.min_score:g}")

    def _beyond(self, hits: Sequence[Hit]) -> list[Drop]:
        rest = enumerate(hits[self.candidates :], self.candidates + 1)
        return [Drop(hit, NAME, f"rank {rank}; the first {self.candidates} are reranked") for rank, hit in rest]

    def _warnings(self, hits: Sequence[Hit], found: Relevance) -> tuple[str, ...]:
        missing = sum(score is None for score in found.scores)
        said = [f"{missing} of {len(hits)} hits have no judgement and keep their places"] if missing else []
        if self.final == "weighted_blend" and (scale := _scale(hits)):
            said.append(f"weighted_blend adds {scale} to a reranker's score: they are on no common scale")
        return (*found.warnings, *said)


def _scale(hits: Sequence[Hit]) -> str:
    """What is wrong with the scale of the retrieval scores; "" where they lie between 0 and 1."""
    kinds = {hit.retrieved[1] for hit in hits}
    if unbounded := sorted(kinds & UNBOUNDED):
        return f"a score with no upper bound ({', '.join(unbounded)})"
    if any(hit.retrieved[1] == "rrf" and hit.retrieved[0] != hit.normalized for hit in hits):
        return "an RRF score of a few hundredths (see fusion.normalize)"
    return ""
