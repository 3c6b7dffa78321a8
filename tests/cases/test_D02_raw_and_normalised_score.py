"""D02: weights were not applied, and raw scores of reciprocal rank fusion say nothing by themselves."""

from __future__ import annotations

import json

import pytest

from ragcli.cli.formats import Reply, render
from ragcli.fuse import Arm, fuse
from ragcli.options import FusionSettings
from tests.cli.results import fused, hybrid

ARMS = [Arm("bm25", {1: 1, 2: 2}, {1: 9.0, 2: 7.0}), Arm("dense", {1: 1, 3: 2}, {1: 0.8, 3: 0.7})]


@pytest.mark.spec("R5", "C11")
def test_json_has_both_scores_and_weights_are_in_them() -> None:
    settings = FusionSettings(method="rrf", weights={"bm25": 0.7, "dense": 0.3})
    found = fuse(ARMS, settings, {chunk: ("a.md", chunk) for chunk in (1, 2, 3)})
    hits = [fused(one.score, "rrf", dict(one.arms), index=one.chunk, normalized=one.normalized) for one in found]
    (text,) = render("json", Reply(result=hybrid(*hits, options={})))
    shown = {hit["chunk_index"]: (hit["score"], hit["normalized"]) for hit in json.loads(text)["hits"]}
    assert shown == {
        1: pytest.approx((1 / 61, 1.0), abs=1e-15),  # first of both: the best there can be
        2: pytest.approx((0.7 / 62, 0.7 * 61 / 62), abs=1e-15),
        3: pytest.approx((0.3 / 62, 0.3 * 61 / 62), abs=1e-15),
    }
