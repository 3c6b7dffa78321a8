"""D08: weights were given to the wrong list. Each list's weight, rank and part are told, and parts add up."""

from __future__ import annotations

import json
from itertools import permutations
from math import fsum, sqrt

import pytest

from ragcli.cli.formats import Reply, render
from ragcli.fuse import Arm, fuse, trace_options
from ragcli.options import FusionMethod, FusionSettings
from tests.cli.results import fused, hybrid

ARMS = [
    Arm("bm25", {1: 1, 2: 2, 3: 3}, {1: 7.31, 2: 4.13, 3: 1.7, 4: 0.0}),
    Arm("dense", {4: 1, 2: 2}, {1: 0.337, 2: 0.471, 3: 0.1, 4: 0.613}),
]
WEIGHTS = {"dense": 0.7, "bm25": 0.3}  # named in another order than the arms come in
NAMES = {chunk: ("a.md", chunk) for chunk in range(1, 5)}


@pytest.mark.spec("R5", "R6", "C8")
@pytest.mark.parametrize("method", ["relative", "zscore", "rrf"])
@pytest.mark.parametrize("arms", list(permutations(ARMS)))
def test_explain_names_list_weight_rank_and_part_and_they_add_up(method: FusionMethod, arms: tuple[Arm, ...]) -> None:
    settings = FusionSettings(method=method, weights=WEIGHTS)
    found = fuse(arms, settings, NAMES)
    hits = [fused(one.score, method, dict(one.arms), index=one.chunk, normalized=one.normalized) for one in found]
    options = trace_options([arm.name for arm in arms], settings)
    (text,) = render("json", Reply(result=hybrid(*hits, options=options), explain=True))
    value = json.loads(text)
    assert value["stages"][-1]["options"]["weights"] == WEIGHTS
    for hit in value["hits"]:
        assert abs(fsum(arm["part"] for arm in hit["arms"].values()) - hit["score"]) <= 1e-12
        assert {name: arm["rank"] for name, arm in hit["arms"].items()} == {
            arm.name: arm.ranked.get(hit["chunk_index"]) for arm in arms
        }
    assert max(hit["arms"]["bm25"]["part"] for hit in value["hits"]) == pytest.approx(best(method, 0, 0.3), abs=1e-12)
    assert max(hit["arms"]["dense"]["part"] for hit in value["hits"]) == pytest.approx(best(method, 1, 0.7), abs=1e-12)


def best(method: FusionMethod, arm: int, weight: float) -> float:
    """What the arm adds to the chunk that it likes best."""
    scores = list(ARMS[arm].scores.values())
    mean = sum(scores) / 4
    deviation = sqrt(sum((score - mean) ** 2 for score in scores) / 4)
    return weight * {"relative": 1.0, "rrf": 1 / 61, "zscore": (max(scores) - mean) / deviation}[method]
