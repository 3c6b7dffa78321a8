"""Hits of several arms, in each format: where they stood in each arm, and what that added to their score."""

from __future__ import annotations

import json
from math import fsum
from typing import Any

import pytest

from ragcli.cli.explained import stage_lines
from ragcli.cli.formats import Reply, render
from ragcli.fuse import Arm, fuse, trace_options
from ragcli.options import FusionSettings
from ragcli.types import ArmScore, Result, Step, Trace
from tests.cli.results import fused, hybrid, result
from tests.cli.test_formats import checked, written
from tests.cli.test_table import plain

BOTH = {"bm25": ArmScore(1, 8.5, 0.3), "dense": ArmScore(3, 0.6123, 0.42)}
DENSE_ALONE = {"bm25": ArmScore(None, 0.0, 0.0), "dense": ArmScore(1, 0.7, 0.7)}
NO_VECTOR = {"bm25": ArmScore(2, 4.0, 0.15), "dense": ArmScore(None, None, 0.0)}
WEIGHTS = {"method": "relative", "weights": {"bm25": 0.3, "dense": 0.7}}


def relative() -> Result:
    first = fused(0.72, "relative", BOTH, terms={"torque": 5.5, "sensor": 3.0})
    return hybrid(first, fused(0.7, "relative", DENSE_ALONE), fused(0.15, "relative", NO_VECTOR), options=WEIGHTS)


def rrf(**options: Any) -> Result:
    """Two arms of three chunks, fused for good."""
    arms = [Arm("bm25", {1: 1, 2: 2}, {1: 8.0, 2: 2.0, 3: 0.0}), Arm("dense", {3: 1, 1: 2}, {1: 0.6, 2: 0.4, 3: 0.9})]
    settings = FusionSettings(method="rrf", **options)
    found = fuse(arms, settings, {chunk: ("a.md", chunk) for chunk in (1, 2, 3)})
    hits = [fused(one.score, "rrf", dict(one.arms), index=one.chunk, normalized=one.normalized) for one in found]
    steps = (Step("bm25", 3, 2, 0.001, {"k": 2}), Step("dense", 3, 2, 0.001, {"k": 2}))
    return hybrid(*hits, arms=steps, options=trace_options(["bm25", "dense"], settings))


@pytest.mark.spec("C11", "R2")
def test_json_has_rank_score_and_part_of_each_arm() -> None:
    value = checked(written("json", relative()))
    first, second, third = value["hits"]
    assert (value["mode"], first["score_kind"], first["score"]) == ("hybrid", "relative", 0.72)
    assert first["arms"] == {
        "bm25": {"rank": 1, "score": 8.5, "part": 0.3},
        "dense": {"rank": 3, "score": 0.6123, "part": 0.42},
    }
    assert second["arms"]["bm25"] == {"rank": None, "score": 0.0, "part": 0.0}
    assert third["arms"]["dense"] == {"rank": None, "score": None, "part": 0.0}
    assert "normalized" not in first


@pytest.mark.spec("C11", "R5")
@pytest.mark.parametrize("normalize", [False, True])
def test_json_has_the_raw_rrf_score_and_its_share_of_the_best(normalize: bool) -> None:
    """Case D02."""
    hits = checked(written("json", rrf(normalize=normalize)))["hits"]
    assert hits[0]["chunk_index"] == 1
    assert hits[0]["normalized"] == pytest.approx((1 / 61 + 1 / 62) / (2 / 61), abs=1e-12)
    raw = 1 / 61 + 1 / 62
    assert hits[0]["score"] == pytest.approx(hits[0]["normalized"] if normalize else raw, abs=1e-12)
    for hit in hits:
        assert abs(fsum(arm["part"] for arm in hit["arms"].values()) - hit["score"]) <= 1e-12


@pytest.mark.spec("C8", "R5")
def test_explained_json_names_each_list_its_weight_rank_and_contribution() -> None:
    """Case D08."""
    value = checked(written("json", rrf(weights={"bm25": 2, "dense": 1}, rrf_k=10), explain=True))
    options = {stage["name"]: stage["options"] for stage in value["stages"]}
    assert options["bm25"] == {"k": 2}
    assert options["fusion"] == {"method": "rrf", "weights": {"bm25": 2, "dense": 1}, "k": 10, "normalize": False}
    for hit in value["hits"]:
        for name, arm in hit["arms"].items():
            expected = options["fusion"]["weights"][name] / (10 + arm["rank"]) if arm["rank"] else 0.0
            assert arm["part"] == pytest.approx(expected, abs=1e-12)
    assert all("options" not in stage for stage in checked(written("json", rrf()))["stages"])


@pytest.mark.spec("C8", "R2")
def test_explained_each_arm_says_what_it_adds_and_the_terms_add_up_to_the_score_of_bm25() -> None:
    shown = written("plain", relative(), explain=True)
    assert [line for line in shown.splitlines() if line.startswith("    = ")] == [
        "    = bm25 rank 1 score 8.5000: 0.3 × 1.0000 = 0.3000",
        "    = dense rank 3 cosine 0.6123: 0.7 × 0.6000 = 0.4200",
        "    = relative 0.7200 = bm25 0.3000 + dense 0.4200",
        "    = bm25 8.5000 = torque 5.5000 + sensor 3.0000",
        "    = bm25 not among its best 100, score 0.0000: 0.3 × 0.0000 = 0.0000",
        "    = dense rank 1 cosine 0.7000: 0.7 × 1.0000 = 0.7000",
        "    = relative 0.7000 = bm25 0.0000 + dense 0.7000",
        "    = bm25 rank 2 score 4.0000: 0.3 × 0.5000 = 0.1500",
        "    = dense no vector: 0.7 × 0.0000 = 0.0000",
        "    = relative 0.1500 = bm25 0.1500 + dense 0.0000",
    ]
    assert "1. handbook/leave.md:12-13  relative 0.7200  Reset" in shown


@pytest.mark.spec("C8", "R5")
def test_explained_reciprocal_ranks_have_the_digits_in_which_they_differ() -> None:
    lines = written("plain", rrf(weights={"bm25": 2, "dense": 1}), explain=True).splitlines()
    first = lines.index("    = bm25 rank 1 score 8.0000: 2 × 0.016393 = 0.032787")  # 1/61, 2/61
    assert lines[first + 1 : first + 3] == [
        "    = dense rank 2 cosine 0.6000: 1 × 0.016129 = 0.016129",
        "    = rrf 0.048916 = bm25 0.032787 + dense 0.016129 (0.9946 of the best there can be)",  # over 3/61
    ]
    normalized = written("plain", rrf(normalize=True), explain=True)
    assert "= rrf 0.991935 = bm25 0.500000 + dense 0.491935\n" in normalized  # the half each of 61/61 and 61/62


def test_an_arm_that_found_nothing_says_so() -> None:
    hit = fused(0.5, "relative", {"bm25": ArmScore(None, 0.0), "dense": ArmScore(1, 0.7, 0.5)})
    steps = (Step("bm25", 9, 0, 0.001), Step("dense", 9, 1, 0.001))
    found = hybrid(hit, arms=steps, options=trace_options(["bm25", "dense"], FusionSettings()))
    shown = written("plain", found, explain=True)
    assert "= bm25 found nothing, score 0.0000: 0.5 × 0.0000 = 0.0000" in shown


@pytest.mark.spec("R3")
def test_a_hit_of_vector_search_has_a_cosine_and_no_sum() -> None:
    hit = fused(0.61, "cosine", {"dense": ArmScore(1, 0.61, 0.61)})
    found = result(hit, mode="vector", trace=Trace("q", (Step("dense", 9, 1, 0.001),)))
    assert written("plain", found, explain=True).splitlines()[0] == "1. handbook/leave.md:12-13  cosine 0.6100  Reset"
    assert [line for line in written("plain", found, explain=True).splitlines() if "= " in line] == [
        "    = dense rank 1 cosine 0.6100"
    ]
    assert checked(written("json", found))["hits"][0]["score_kind"] == "cosine"


@pytest.mark.spec("C8")
def test_a_stage_shows_what_it_ran_with() -> None:
    steps = relative().trace
    assert stage_lines(steps) == [
        "bm25: 700 in, 100 out, 2.0 ms (k 100, k1 1.5, b 0.75, terms torque sensor)",
        "dense: 690 in, 100 out, 4.0 ms (k 100, min_score 0, exact on)",
        "fusion: 150 in, 3 out, 0.1 ms (method relative, weights bm25=0.3 dense=0.7)",
    ]
    failed = Trace("q", (Step("dense", 0, 0, 0.0, {}, ("the dense arm failed: no answer",)),))
    assert stage_lines(failed) == ["dense: 0 in, 0 out, 0.0 ms; the dense arm failed: no answer"]
    hostile = Trace("q", (Step("bm25", 1, 1, 0.0, {"terms": ("\x1b[31m", "x" * 200), "none": None, "exact": False}),))
    (line,) = stage_lines(hostile)
    assert "\x1b" not in line
    assert line.endswith("…, exact off)")


@pytest.mark.spec("C2", "C11")
def test_every_other_format_shows_score_and_kind() -> None:
    assert "(relative 0.7200)" in written("md", relative())
    assert "- dense rank 3 cosine 0.6123: 0.7 × 0.6000 = 0.4200" in written("md", relative(), explain=True)
    assert written("csv", relative()).splitlines()[1].startswith("1,0.72,relative,handbook/leave.md,3,")
    assert written("tsv", relative()).splitlines()[1].startswith("1\t0.72\trelative\t")
    lines = written("jsonl", relative()).splitlines()
    assert [json.loads(line)["arms"]["dense"]["rank"] for line in lines] == [3, 1, None]
    assert written("trec", rrf()).startswith("1 Q0 handbook/leave.md 1 0.03252")


@pytest.mark.spec("C2", "C8")
@pytest.mark.parametrize("width", [40, 72, 80, 200])
def test_the_table_fits_and_explains(width: int) -> None:
    shown = plain("".join(map(str, render("table", Reply(result=relative(), width=width, explain=True)))))
    assert max(map(len, shown.split("\n"))) <= width
    words = " ".join(shown.split())
    for part in ("relative", "0.7200", "fusion: 150 in, 3 out"):
        assert part in words
    assert width < 200 or "= dense rank 3 cosine 0.6123: 0.7 × 0.6000 = 0.4200" in words
