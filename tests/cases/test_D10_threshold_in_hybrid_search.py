"""D10: `min_score` is a cosine, of the dense arm alone; no keyword hit and no fused score is cut by it."""

from __future__ import annotations

import pytest

from tests.commands import Shell


@pytest.mark.spec("R4")
@pytest.mark.usefixtures("oaks")
def test_it_cuts_dense_hits_before_the_fusion_and_no_keyword_hit(shell: Shell) -> None:
    found = shell("query", "oak", "--min-score", "0.5", "--json").json()
    hits = {hit["document_id"]: hit for hit in found["hits"]}
    assert set(hits) == {"a", "b"}
    assert hits["b"]["arms"]["dense"]["rank"] is None
    assert hits["b"]["arms"]["dense"]["score"] < 0.5 <= hits["a"]["arms"]["dense"]["score"]
    assert hits["b"]["arms"]["bm25"]["rank"] == 2
    assert hits["b"]["score"] < 0.5  # a fused score is not compared with it


@pytest.mark.spec("R4")
@pytest.mark.usefixtures("oaks")
def test_in_vector_mode_it_is_the_lowest_cosine(shell: Shell) -> None:
    hits = shell("query", "oak", "--mode", "vector", "--min-score", "0.5", "--json").json()["hits"]
    assert [hit["document_id"] for hit in hits] == ["a"]
    assert hits[0]["score_kind"] == "cosine"
