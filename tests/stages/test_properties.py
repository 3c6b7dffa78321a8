"""What every stage keeps, whatever hits it gets (design: stages compose): walked over the registry.

Ids in are ids out and dropped, each once, each drop with a reason; nothing in, nothing out; the input stays as it was;
the same input gives the same output; scores are finite and the parts of a new one add up to it; what was dropped or
warned of before comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.registry import names, resolve
from ragcli.types import Drop, Hit, Ranking, Relevance, Stage
from tests.stages.corpus import FakeCorpus, Key, chunk, hit, key

DOCUMENTS = ("a.md", "b.md", "c.md")
KEYS: tuple[Key, ...] = tuple((name, index) for name in DOCUMENTS for index in range(4))
WORDS = ("gauge", "rain", "snow", "river", "lamp")


class ByLength:
    """A reranker to which short passages are the best, and which can't judge of every seventh character count."""

    name = "by length"

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        return Relevance(tuple(None if len(text) % 7 == 0 else -float(len(text)) for text in passages), logits=True)

    def close(self) -> None:
        """Holds nothing."""


SAMPLES: Mapping[str, Sequence[Mapping[str, object]]] = {
    "budget": [{"max_tokens": 1}, {"max_tokens": 40}, {"max_tokens": 10_000}],
    "compress": [{}, {"sentences": 1}],
    "cut": [{"top_k": 1}, {"top_k": 3}],
    "mmr": [{"picks": 2}, {"lambda_": 0.0}, {"candidates": 3, "relevance": "cosine"}, {"by_parent": True}],
    "parents": [{}],
    "per_document": [{"limit": 1}, {"limit": 2}],
    "redundancy": [{}, {"threshold": 0.5}, {"threshold": -1.0}],
    "reorder": [{}],
    "rerank": [
        {"reranker": ByLength()},
        {"reranker": ByLength(), "candidates": 2, "min_score": 0.1},
        {"reranker": ByLength(), "final": "weighted_blend", "min_score": 1e-9},
        {"reranker": ByLength(), "skip_when_few": True},
    ],
    "where": [{"where": "score > 0.5"}, {"where": 'document_id == "a.md"'}],
}


def made(name: str) -> list[Stage]:
    """The stage of that name, once for each of its samples."""
    stage: Callable[..., Stage] = resolve("stage", name)
    if name == "where":
        return [stage(*sample.values()) for sample in SAMPLES[name]]
    return [stage(**sample) for sample in SAMPLES[name]]


@st.composite
def rankings(draw: st.DrawFn) -> Ranking:
    """Up to twelve hits of three documents, scores descending, some of them dropped before."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=len(KEYS)))
    scores = sorted((draw(st.floats(-2, 2, allow_subnormal=False)) for _ in keys), reverse=True)
    texts = [draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(sentence)) for _ in keys]
    kind = draw(st.sampled_from(["cosine", "bm25", "relative", "rrf"]))
    hits = [hit(*one, score=score, kind=kind, text=text) for one, score, text in zip(keys, scores, texts, strict=True)]
    gone = draw(st.integers(0, min(2, len(hits))))
    dropped = tuple(Drop(one, "before", "so it was") for one in hits[:gone])
    return Ranking(tuple(hits[gone:]), dropped, ("a warning from before",) if gone else ())


def sentence(words: list[str]) -> str:
    """Every fourth word ends a sentence."""
    return " ".join(f"{word.title()}." if at % 4 == 3 else word for at, word in enumerate(words))


@st.composite
def corpora(draw: st.DrawFn) -> FakeCorpus:
    """Vectors in three dimensions, some alike, some zero; parents of two children each."""
    number = st.sampled_from([-1.0, 0.0, 0.5, 1.0])
    vector = st.tuples(number, number, number)
    vectors = {one: draw(vector) for one in KEYS}
    parents = {(name, index): chunk(name, index // 2, f"parent {index // 2} of {name}") for name, index in KEYS}
    query = draw(vector.filter(any))
    return FakeCorpus(vectors, query, parents, embed=lambda text: (len(text) % 3, len(text) % 5, 1.0))


def test_every_stage_of_the_registry_has_samples() -> None:
    assert set(SAMPLES) == set(names("stage"))


@pytest.mark.spec("P11", "P12")
@pytest.mark.parametrize("name", names("stage"))
@settings(max_examples=60, deadline=None)
@given(ranking=rankings(), corpus=corpora())
def test_what_every_stage_keeps(name: str, ranking: Ranking, corpus: FakeCorpus) -> None:
    for stage in made(name):
        before = msgspec.to_builtins(ranking)
        after = stage("gauge and rain", ranking, corpus)
        assert msgspec.to_builtins(ranking) == before
        assert stage("gauge and rain", ranking, corpus) == after
        check_conservation(ranking, after)
        check_scores(after.hits)


def check_conservation(ranking: Ranking, after: Ranking) -> None:
    assert after.dropped[: len(ranking.dropped)] == ranking.dropped
    assert after.warnings[: len(ranking.warnings)] == ranking.warnings
    fresh = after.dropped[len(ranking.dropped) :]
    assert sorted([*map(key, after.hits), *(key(drop.hit) for drop in fresh)]) == sorted(map(key, ranking.hits))
    assert all(drop.reason and drop.stage for drop in fresh)


def check_scores(hits: Sequence[Hit]) -> None:
    for one in hits:
        assert isfinite(one.score)
        for mark in one.marks:
            if mark.parts:
                assert sum(mark.parts.values()) == pytest.approx(mark.score, abs=1e-12)


@pytest.mark.parametrize("name", names("stage"))
def test_of_nothing_comes_nothing(name: str) -> None:
    """And nothing is asked of the corpus: an index without vectors has no hits either."""
    for stage in made(name):
        assert stage("q", Ranking(), FakeCorpus()) == Ranking()
