"""Each hit's parent in its place, each parent once (spec P7)."""

from __future__ import annotations

import msgspec
import pytest

from ragcli.errors import IndexMismatch, RagcliError
from ragcli.stages.parents import Parents
from ragcli.types import Chunk, Drop, Parent, Ranking
from tests.stages.corpus import FakeCorpus, chunk, hit, ranking


def parent(document: str, index: int) -> Chunk:
    return chunk(
        document, index, f"parent {index} of {document}", start=100 * index, end=100 * index + 15,
        start_line=7, end_line=9, page=2, page_end=3, heading="H", heading_level=2, heading_breadcrumb="T > H",
        metadata={"of": "a parent"},
    )  # fmt: skip


# a's chunks 0 to 2 lie in its parent 0, 3 in its parent 1; b's only chunk in b's parent 0
CORPUS = FakeCorpus(
    parents={
        **{("a", index): parent("a", 0) for index in range(3)},
        ("a", 3): parent("a", 1),
        ("b", 0): parent("b", 0),
    }
)
FOUND = Ranking((hit("a", 1, 0.9), hit("b", 0, 0.8), hit("a", 3, 0.7), hit("a", 0, 0.6), hit("a", 2, 0.5)))


@pytest.mark.spec("P7")
def test_several_children_of_one_parent_are_one_hit_at_the_best_place() -> None:
    after = Parents()("q", FOUND, CORPUS)
    assert [one.parent for one in after.hits] == [Parent(0, (1, 0, 2)), Parent(0, (0,)), Parent(1, (3,))]
    assert [one.score for one in after.hits] == [0.9, 0.8, 0.7]
    assert [(one.chunk.document_id, one.chunk.index) for one in after.hits] == [("a", 1), ("b", 0), ("a", 3)]
    reason = "part of parent 0 of a, which stands at rank 1 for chunk 1"
    assert after.dropped == (Drop(FOUND.hits[3], "parents", reason), Drop(FOUND.hits[4], "parents", reason))


@pytest.mark.spec("P7")
def test_text_and_place_are_the_parents_all_else_is_the_childs() -> None:
    child = msgspec.structs.replace(
        FOUND.hits[0].chunk, context="title", metadata={"of": "a child"}, path="/x/a", title="A"
    )
    before = msgspec.structs.replace(FOUND.hits[0], chunk=child, terms={"t": 0.9})
    (after,) = Parents()("q", Ranking((before,)), CORPUS).hits
    assert after.chunk == msgspec.structs.replace(
        child, text="parent 0 of a", start=0, end=15, start_line=7, end_line=9, page=2, page_end=3, heading="H",
        heading_level=2, heading_breadcrumb="T > H",
    )  # fmt: skip
    assert (after.score, after.score_kind, after.arms, after.terms) == (0.9, "relative", {}, {"t": 0.9})


@pytest.mark.spec("P7")
def test_a_hit_says_what_happened_to_it() -> None:
    notes = [one.marks[-1].note for one in Parents()("q", FOUND, CORPUS).hits]
    assert notes == [
        "parent 0 in place of chunks 1, 0 and 2", "parent 0 in place of chunk 0", "parent 1 in place of chunk 3",
    ]  # fmt: skip


@pytest.mark.spec("P7")
def test_a_rank_counts_distinct_parents() -> None:
    found = Ranking((hit("a", 0), hit("a", 1), hit("b", 0), hit("a", 3), hit("a", 2)))
    corpus = FakeCorpus(parents={**{("a", n): parent("a", n // 2) for n in range(4)}, ("b", 0): parent("b", 0)})
    after = Parents()("q", found, corpus)
    assert [drop.reason for drop in after.dropped] == [
        "part of parent 0 of a, which stands at rank 1 for chunk 0",
        "part of parent 1 of a, which stands at rank 3 for chunk 3",
    ]


def test_what_stages_before_it_said_stays() -> None:
    gone, warned = Drop(hit("c"), "cut", "why"), ("a warning",)
    after = Parents()("q", Ranking(FOUND.hits, (gone,), warned), CORPUS)
    assert after.dropped[0] == gone
    assert after.warnings == warned


@pytest.mark.spec("P7")
def test_when_a_lookup_fails_nothing_is_replaced() -> None:
    with pytest.raises(RagcliError, match="has no parent yet"):
        Parents()("q", ranking("b", "unknown"), CORPUS)
    with pytest.raises(IndexMismatch):
        Parents()("q", ranking("b"), FakeCorpus())


def test_of_nothing_no_parent_is_asked_for() -> None:
    assert Parents()("q", Ranking(), FakeCorpus()) == Ranking()
