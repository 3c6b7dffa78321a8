"""`inspect QUERY --trace`: each stage with what went in and out, what it dropped and why, and the order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from ragcli.cli import main, tracing
from ragcli.types import Trace
from tests.cli.results import result, staged
from tests.cli.test_formats import SCHEMA


def stages_of(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {stage["name"]: stage for stage in value["stages"]}


@pytest.mark.spec("A11")
def test_text_names_what_each_stage_dropped_and_the_order_that_it_made() -> None:
    lines = tracing.text(staged()).splitlines()
    assert lines[:3] == ["query  torque sensor", "mode   hybrid", ""]
    at = lines.index("redundancy: 6 in, 5 out, 0.4 ms (threshold 0.95)")
    assert lines[at + 1 : at + 9] == [
        "    dropped: rank 2  b.md#1  cosine 0.97 with a.md#0, at or above 0.95",
        "mmr: 5 in, 4 out, 0.4 ms (picks 4, candidates 15, lambda 0.5)",
        "    dropped: rank 5  f.md#5  not among the 4 that were picked",
        "    order: 1 4 2 3 (ranks before it)",
        "cut: 4 in, 4 out, 0.4 ms (top_k 4)",
        "budget: 4 in, 3 out, 0.4 ms (max_tokens 1000)",
        "    dropped: rank 4  d.md#3  needs 300 tokens, 120 are left",
        "reorder: 3 in, 3 out, 0.4 ms",
    ]
    assert lines[at + 9] == "    order: 1 3 2 (ranks before it)"
    heads = [line for line in lines if line[:1].isdigit()]
    assert heads == [
        "1. a.md:12-13  mmr 0.4500  Reset",
        "3. c.md:12-13  mmr 0.2250  Reset",
        "2. e.md:12-13  mmr 0.2000  Reset",
    ]
    assert "    e.md#4: rank 5 → 4 by redundancy → 2 by mmr; place 3 by reorder" in lines
    assert lines[-1] == "reordered: the best at both ends (lost in the middle)"


@pytest.mark.spec("A11", "C11")
def test_json_has_the_order_behind_each_stage_with_the_scores_of_then() -> None:
    value = msgspec.json.decode(msgspec.json.encode(tracing.trace_object(staged())))
    stages = stages_of(value)
    assert stages["redundancy"]["dropped"] == [
        {
            "document_id": "b.md", "chunk_index": 1, "rank": 2,
            "reason": "cosine 0.97 with a.md#0, at or above 0.95",
        }
    ]  # fmt: skip
    assert [one["document_id"] for one in stages["mmr"]["order"]] == ["a.md", "e.md", "c.md", "d.md"]
    assert stages["mmr"]["order"][1] == {
        "document_id": "e.md", "chunk_index": 4, "rank_before": 4, "rank": 2,
        "score": pytest.approx(0.2, abs=1e-12), "score_kind": "mmr",
    }  # fmt: skip
    assert [(one["score"], one["score_kind"]) for one in stages["redundancy"]["order"]][1] == (0.7, "relative")
    assert (stages["bm25"]["order"], stages["bm25"]["dropped"]) == ([], [])
    assert stages["mmr"]["options"] == {"picks": 4, "candidates": 15, "lambda": 0.5}


@pytest.mark.spec("A11", "C11")
def test_without_its_two_keys_a_stage_it_is_what_query_writes() -> None:
    value = tracing.trace_object(staged())
    for stage in value["stages"]:
        del stage["order"], stage["dropped"]
    jsonschema.validate(msgspec.json.decode(msgspec.json.encode(value)), SCHEMA)


def test_nothing_found_is_said() -> None:
    assert tracing.text(result(trace=Trace("torque sensor"))).endswith("\nno hits\n")


@pytest.mark.spec("C7", "A11")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["torque", "sensor"], "a query (torque sensor) goes with --trace, --prompt or --why"),
        (["--stats", "torque"], "a query (torque) goes with --trace, --prompt or --why"),
        (["--mmr"], "--mmr goes with --trace, --prompt or --why"),
        (["--config", "--no-mmr"], "--no-mmr goes with --trace, --prompt or --why"),
        (["--trace"], "--trace needs a query"),
        (["--why"], "--why needs a query"),
        (["x", "--trace", "--model", "m"], "--model goes with --prompt or --why"),
        (["x", "--prompt", "--expect", "t"], "--expect goes with --why and holds a text"),
        (["x", "--why", "--expect", " "], "--expect goes with --why and holds a text"),
        (["--trace", "--stats", "x"], "one view at a time: --stats and --trace"),
    ],
)
def test_a_query_and_the_view_go_together(
    arguments: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *arguments, "--index", str(tmp_path / "none.db")]) == 2
    out, err = capfd.readouterr()
    assert (out, err.splitlines()[0]) == ("", f"error: {said}")
    assert err.splitlines()[1].startswith("hint: ")
