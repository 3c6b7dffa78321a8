"""Which stages a call runs, and in which order (spec P12)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragcli.errors import ExpressionError
from ragcli.options import RerankSettings, RetrievalOptions
from ragcli.registry import names
from ragcli.retrieval import Stages
from ragcli.sequence import Tools, sequence, thinning
from ragcli.types import Relevance

ALL = RetrievalOptions(
    where="score > 0", redundancy_filter=True, per_document=3, mmr=True, max_context_tokens=1000,
    compression="extractive", lost_in_the_middle=True,
)  # fmt: skip
SPEC_ORDER = [
    "where", "redundancy", "per_document", "mmr", "rerank", "parents", "cut", "budget", "compress", "reorder",
]  # fmt: skip


class Fair:
    """A reranker to which all are alike."""

    name = "fair"

    def judge(self, query: str, passages: Sequence[str]) -> Relevance:
        return Relevance(tuple(0.5 for _ in passages))

    def close(self) -> None:
        """Holds nothing."""


def planned(options: RetrievalOptions, tools: Tools) -> Stages:
    return sequence(thinning(options), options, RerankSettings(), tools)


def of(stages: Stages) -> list[str]:
    return [name for name, _ in (*stages.thinning, *stages.late)]


@pytest.mark.spec("P12")
def test_all_stages_run_in_the_order_of_the_spec() -> None:
    assert of(planned(ALL, Tools(reranker=Fair(), parents=True))) == SPEC_ORDER
    assert set(SPEC_ORDER) == set(names("stage"))


@pytest.mark.spec("P12")
@pytest.mark.parametrize("left_out", ["where", "redundancy_filter", "per_document", "mmr", "lost_in_the_middle"])
def test_one_that_is_left_out_leaves_the_order_of_the_others(left_out: str) -> None:
    from msgspec.structs import replace

    off = {"where": "", "per_document": None}.get(left_out, False)
    gone = {"redundancy_filter": "redundancy", "lost_in_the_middle": "reorder"}.get(left_out, left_out)
    found = of(planned(replace(ALL, **{left_out: off}), Tools(reranker=Fair(), parents=True)))
    assert found == [name for name in SPEC_ORDER if name != gone]


def test_without_options_there_are_none() -> None:
    assert planned(RetrievalOptions(top_k=7), Tools()) == Stages((), (), candidates=7, needed=7)


@pytest.mark.parametrize(
    ("options", "tools", "candidates", "needed"),
    [
        (RetrievalOptions(redundancy_filter=True), Tools(), 15, 5),  # 5 x 3, to fill the five
        (RetrievalOptions(mmr=True), Tools(), 15, 15),  # MMR picks from 15
        (RetrievalOptions(mmr=True, mmr_candidate_count=40), Tools(), 40, 40),
        (RetrievalOptions(mmr=True, mmr_candidate_count=2), Tools(), 15, 5),  # never from fewer than it picks
        (RetrievalOptions(), Tools(reranker=Fair()), 15, 15),
        (RetrievalOptions(candidate_count=50), Tools(reranker=Fair()), 50, 50),
        (RetrievalOptions(candidate_count=50, mmr=True), Tools(reranker=Fair()), 50, 15),  # it sees MMR's picks
        (RetrievalOptions(), Tools(parents=True), 15, 5),
        (RetrievalOptions(max_context_tokens=100), Tools(), 5, 5),  # a budget only takes away
        (RetrievalOptions(lost_in_the_middle=True), Tools(), 5, 5),
    ],
)
def test_how_many_candidates_are_asked_for(
    options: RetrievalOptions, tools: Tools, candidates: int, needed: int
) -> None:
    found = planned(options, tools)
    assert (found.candidates, found.needed) == (candidates, needed)


@pytest.mark.spec("P3")
def test_mmr_may_leave_more_to_the_reranker() -> None:
    from ragcli.stages.mmr import Mmr
    from ragcli.stages.rerank import Rerank

    stages = dict(planned(RetrievalOptions(mmr=True, mmr_keep=12), Tools(reranker=Fair())).late)
    mmr, rerank = stages["mmr"], stages["rerank"]
    assert isinstance(mmr, Mmr)
    assert isinstance(rerank, Rerank)
    assert (mmr.picks, mmr.candidates) == (12, 15)
    assert rerank.candidates >= 12


def test_a_condition_that_cannot_be_parsed_is_found_before_anything_is_opened() -> None:
    with pytest.raises(ExpressionError):
        thinning(RetrievalOptions(where="score >"))
