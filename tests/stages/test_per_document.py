"""At most so many hits of one document; the rest is dropped with its reason."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from ragcli.errors import OptionError
from ragcli.stages.per_document import PerDocument
from ragcli.types import Chunk, Hit, Ranking
from tests.stages.corpus import FakeCorpus


def ranking(documents: str) -> Ranking:
    return Ranking(
        tuple(
            Hit(
                chunk=Chunk(document_id=d, index=i, start=0, end=1, text="x", start_line=1, end_line=1),
                score=9.0 - i,
                score_kind="bm25",
            )
            for i, d in enumerate(documents)
        )
    )


def test_the_best_of_each_document_stay_in_order() -> None:
    after = PerDocument(2)("q", ranking("aababc"), FakeCorpus())
    assert [(hit.chunk.document_id, hit.chunk.index) for hit in after.hits] == [
        ("a", 0),
        ("a", 1),
        ("b", 2),
        ("b", 4),
        ("c", 5),
    ]
    (drop,) = after.dropped
    assert (drop.hit.chunk.index, drop.stage, drop.reason) == (3, "per_document", "hit 3 of a; limit 2")


@given(st.text("abc", max_size=12), st.integers(1, 4))
@profile(max_examples=80, deadline=None)
def test_what_comes_in_goes_out_once_or_is_dropped(documents: str, limit: int) -> None:
    before = ranking(documents)
    after = PerDocument(limit)("q", before, FakeCorpus())
    assert sorted(h.chunk.index for h in (*after.hits, *(d.hit for d in after.dropped))) == list(range(len(documents)))
    kept = Counter(hit.chunk.document_id for hit in after.hits)
    assert kept == Counter({d: min(n, limit) for d, n in Counter(documents).items()})
    assert PerDocument(limit)("q", after, FakeCorpus()) == after


@pytest.mark.spec("R1")
def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(OptionError, match="per_document = 0"):
        PerDocument(0)
