"""Reranking (spec P3, P5, P6): order, scores, floors, failed judgements."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, nan
from random import Random

import pytest
from msgspec.structs import replace

from ragcli.errors import OptionError, RagcliError
from ragcli.stages.rerank import Rerank, rerank, shown
from ragcli.types import Hit, Ranking, Relevance
from tests.stages.corpus import FakeCorpus, chunk, hit, order, ranking, reasons

CORPUS = FakeCorpus()


class Scripted:
    """Gives the scores it was made with; keeps what it was asked."""

    name = "scripted"

    def __init__(self, *scores: float | None, logits: bool = False, warnings: Sequence[str] = ()) -> None:
        self._found = Relevance(scores, logits, tuple(warnings))
        self.asked: list[tuple[str, list[str]]] = []

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        self.asked.append((query, list(passages)))
        return self._found

    def close(self) -> None:
        """Holds nothing."""


# ------------------------------------------------------------------------------------------------------- the function


@pytest.mark.spec("P3", "P11")
def test_plain_lists_and_a_plain_function() -> None:
    found = rerank("oak", ["an elm", "an oak", "oak oak"], lambda query, texts: [text.count(query) for text in texts])
    assert [(one.position, one.score) for one in found] == [(2, 2), (1, 1), (0, 0)]


@pytest.mark.spec("P3")
def test_equal_scores_keep_their_order() -> None:
    assert [one.position for one in rerank("q", list("abcd"), Scripted(0.5, 0.7, 0.5, 0.7))] == [1, 3, 0, 2]


@pytest.mark.spec("P4")
def test_saturated_logits_keep_their_order() -> None:
    found = rerank("q", list("abc"), Scripted(38.0, 45.5, 41.0, logits=True))
    assert [one.position for one in found] == [1, 2, 0]
    assert {one.score for one in found} == {1.0}  # all of them are shown as 1


@pytest.mark.spec("P4")
def test_scores_from_0_to_1_are_not_squashed_again() -> None:
    assert [one.score for one in rerank("q", list("ab"), Scripted(0.007, 0.4))] == [0.4, 0.007]


@pytest.mark.parametrize("logit", [-800.0, -20.0, -1.0, 0.0, 1.0, 20.0, 800.0])
def test_the_logistic_function(logit: float) -> None:
    wanted = 1 / (1 + exp(-logit)) if logit > -700 else 0.0
    assert shown(logit, logit=True) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.spec("P4", "R8")
def test_what_was_not_judged_keeps_its_place() -> None:
    found = rerank("q", list("abcde"), Scripted(0.1, None, 0.9, None, 0.5))
    assert [one.position for one in found] == [2, 1, 4, 3, 0]


@pytest.mark.spec("P3")
def test_of_nothing_nobody_is_asked() -> None:
    reranker = Scripted()
    assert rerank("q", [], reranker) == []
    assert Rerank(reranker)("q", Ranking(), CORPUS) == Ranking()
    assert reranker.asked == []


@pytest.mark.parametrize("scores", [(0.1,), (0.1, 0.2, 0.3), (0.1, nan), (inf, 0.1)])
def test_scores_that_do_not_fit_are_the_rerankers_error(scores: tuple[float, ...]) -> None:
    with pytest.raises(RagcliError, match="scripted: "):
        rerank("q", ["a", "b"], Scripted(*scores))


@pytest.mark.spec("P3")
def test_random_scores_against_a_stable_sort() -> None:
    random = Random(4)
    for _ in range(500):
        scores = [random.choice([0.0, 0.25, 0.5, 1.0]) for _ in range(random.randint(1, 9))]
        wanted = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
        assert [one.position for one in rerank("q", ["x"] * len(scores), Scripted(*scores))] == wanted


# ---------------------------------------------------------------------------------------------------------- the stage


@pytest.mark.spec("P3", "P5", "R2")
def test_the_rerankers_score_replaces_that_of_retrieval() -> None:
    after = Rerank(Scripted(-1.0, 2.0, 0.0, logits=True))("q", ranking("a", "b", "c"), CORPUS)
    assert order(after) == ["b", "c", "a"]
    best = after.hits[0]
    assert best.score == pytest.approx(1 / (1 + exp(-2.0)), abs=1e-15)
    assert best.score_kind == "rerank"
    assert best.retrieved == (0.5, "relative")
    assert best.marks[-1].parts == {"reranker": best.score}
    assert best.marks[-1].note == "logit 2.0000"


@pytest.mark.spec("P5")
def test_a_weighted_blend_adds_both() -> None:
    stage = Rerank(Scripted(0.2, 0.9, 0.4), final="weighted_blend", retrieval_weight=0.65)
    after = stage("q", ranking("a", "b", "c"), CORPUS)
    wanted = {"a": 0.65 * 1 + 0.35 * 0.2, "b": 0.65 / 2 + 0.35 * 0.9, "c": 0.65 / 3 + 0.35 * 0.4}
    assert order(after) == ["a", "b", "c"]  # 0.72, 0.64, 0.357
    for one in after.hits:
        assert one.score == pytest.approx(wanted[one.chunk.document_id], abs=1e-15)
        assert sum(one.marks[-1].parts.values()) == pytest.approx(one.score, abs=1e-12)
        assert one.score_kind == "blend"
    assert after.warnings == ()


@pytest.mark.spec("P5")
def test_a_blend_is_ordered_by_its_sum_not_by_the_reranker() -> None:
    stage = Rerank(Scripted(0.5, 0.6), final="weighted_blend", retrieval_weight=0.9)
    assert order(stage("q", ranking("a", "b"), CORPUS)) == ["a", "b"]


@pytest.mark.spec("P5")
def test_a_blend_takes_the_score_of_retrieval_not_that_of_mmr() -> None:
    picked = hit("a", score=0.8).rescored("mmr", "mmr", {"relevance": 0.1, "likeness": 0.0})
    (after,) = Rerank(Scripted(0.5), final="weighted_blend")("q", Ranking((picked,)), CORPUS).hits
    assert after.score == pytest.approx(0.65 * 0.8 + 0.35 * 0.5, abs=1e-15)


@pytest.mark.spec("P5")
@pytest.mark.parametrize(
    ("kind", "normalized", "warned"),
    [
        ("bm25", None, True), ("zscore", None, True), ("rrf", 0.9, True), ("rrf", 1.0, False),
        ("relative", None, False), ("cosine", None, False),
    ],
)  # fmt: skip
def test_a_blend_warns_where_the_scales_differ(kind: str, normalized: float | None, *, warned: bool) -> None:
    one = replace(hit("a", score=1.0, kind=kind), normalized=normalized)
    after = Rerank(Scripted(0.5), final="weighted_blend")("q", Ranking((one,)), CORPUS)
    assert any("no common scale" in warning for warning in after.warnings) is warned


@pytest.mark.spec("P3")
@pytest.mark.parametrize("final", ["reranker_only", "weighted_blend"])
def test_a_floor_on_the_rerankers_own_scale(final: str) -> None:
    stage = Rerank(Scripted(0.05, 0.1, 0.9), min_score=0.1, final=final)  # type: ignore[arg-type]
    after = stage("q", ranking("a", "b", "c"), CORPUS)
    assert set(order(after)) == {"b", "c"}
    assert reasons(after) == {"a": "the reranker gives it 0.0500; rerank.min_score is 0.1"}


@pytest.mark.spec("P4", "R8")
def test_a_hit_without_a_judgement_is_told_and_never_falls_below_the_floor() -> None:
    after = Rerank(Scripted(0.2, None, 0.9), min_score=0.5)("q", ranking("a", "b", "c"), CORPUS)
    assert order(after) == ["c", "b"]
    unjudged = after.hits[1]
    assert (unjudged.score, unjudged.score_kind) == (0.5, "relative")
    assert unjudged.marks[-1].note == "the reranker has no judgement of it: it keeps its place"
    assert after.warnings == ("1 of 3 hits have no judgement and keep their places",)


@pytest.mark.spec("R8")
def test_what_the_reranker_warns_of_is_passed_on() -> None:
    after = Rerank(Scripted(0.5, warnings=["1 of 1 passages was cut"]))("q", ranking("a"), CORPUS)
    assert after.warnings == ("1 of 1 passages was cut",)


@pytest.mark.spec("P3")
def test_only_the_first_candidates_are_judged() -> None:
    reranker = Scripted(0.1, 0.2)
    after = Rerank(reranker, candidates=2)("the query", ranking("a", "b", "c"), CORPUS)
    assert order(after) == ["b", "a"]
    assert reasons(after) == {"c": "rank 3; the first 2 are reranked"}
    assert reranker.asked == [("the query", ["text of a 0", "text of b 0"])]


@pytest.mark.spec("P3")
def test_a_passage_is_judged_as_it_was_embedded() -> None:
    titled = Hit(
        chunk=chunk("a", text="words", context="Title\nPart > Chapter\na.md", path="/d/a.md"),
        score=1,
        score_kind="bm25",
    )
    reranker = Scripted(0.5)
    Rerank(reranker)("q", Ranking((titled,)), CORPUS)
    assert reranker.asked[0][1] == ["Title\nPart > Chapter\nwords"]


@pytest.mark.spec("P6")
@pytest.mark.parametrize(("count", "asked"), [(2, False), (3, False), (4, True)])
def test_few_candidates_may_be_left_as_they_are(count: int, *, asked: bool) -> None:
    reranker = Scripted(*(0.1 * number for number in range(count)))
    after = Rerank(reranker, top_k=3, skip_when_few=True)("q", ranking(*"abcd"[:count]), CORPUS)
    assert bool(reranker.asked) is asked
    assert (order(after) == list("abcd"[:count])) is not asked
    if not asked:
        assert after.hits[0].marks[-1].note == f"not reranked: {count} candidates for a top_k of 3"


@pytest.mark.spec("R1")
@pytest.mark.parametrize("weight", [-0.1, 1.1, nan])
def test_a_weight_out_of_range(weight: float) -> None:
    with pytest.raises(OptionError, match="retrieval_weight"):
        Rerank(Scripted(), retrieval_weight=weight)
