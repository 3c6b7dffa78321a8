"""Results with stages behind them, in each format: ranks, the final order, what each stage made of a hit."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import pairwise
from math import fsum
from typing import Any

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcli.cli.formats import Reply, remark, render
from ragcli.types import Drop, Hit, Parent, Result, Step
from tests.cli.results import found, hit, of_stages, picked, result, staged, step
from tests.cli.test_formats import checked, written
from tests.cli.test_table import drawn, plain

REORDERED = "reordered: the best at both ends (lost in the middle)"


def shown(name: str, found: Result, width: int = 200, **how: Any) -> str:
    pieces = render(name, Reply(result=found, width=width, **how))
    return plain("".join(piece.decode() if isinstance(piece, bytes) else piece for piece in pieces))


# --------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.spec("C8", "C11")
def test_json_has_rank_position_and_the_score_that_retrieval_gave() -> None:
    hits = checked(written("json", staged()))["hits"]
    assert [(one["document_id"], one["rank"], one["position"]) for one in hits] == [
        ("a.md", 1, 1),
        ("c.md", 3, 2),
        ("e.md", 2, 3),
    ]
    assert [(one["retrieval_score"], one["retrieval_kind"]) for one in hits] == [
        (0.9, "relative"),
        (0.7, "relative"),
        (0.5, "relative"),
    ]
    assert {one["score_kind"] for one in hits} == {"mmr"}


@pytest.mark.spec("C8", "C11")
def test_json_has_what_each_stage_made_of_a_hit() -> None:
    value = checked(written("json", staged()))
    (only,) = value["hits"][0]["trace"]
    assert only == {
        "stage": "mmr", "rank_before": 1, "rank": 1, "score": 0.45, "score_kind": "mmr",
        "parts": {"relevance": 0.45, "likeness": 0.0}, "note": "",
    }  # fmt: skip
    assert [(stop["stage"], stop["rank_before"], stop["rank"]) for stop in value["hits"][2]["trace"]] == [
        ("redundancy", 5, 4),
        ("mmr", 4, 2),
        ("reorder", 2, 3),
    ]
    for one in value["hits"]:
        (changed,) = [stop for stop in one["trace"] if stop["parts"]]
        assert abs(fsum(changed["parts"].values()) - one["score"]) <= 1e-12
    assert [(drop["document_id"], drop["stage"], drop["rank"]) for drop in value["dropped"]] == [
        ("b.md", "redundancy", 2),
        ("f.md", "mmr", 5),
        ("d.md", "budget", 4),
    ]


@pytest.mark.spec("C11")
def test_without_stages_the_trace_is_empty_and_no_other_score_is_told() -> None:
    (one,) = checked(written("json", result(hit())))["hits"]
    assert (one["rank"], one["position"], one["trace"]) == (1, 1, [])
    assert not {"retrieval_score", "retrieval_kind", "parent", "compressed_text"} & set(one)


@pytest.mark.spec("C8", "C11")
def test_explained_json_has_options_and_warnings_of_each_stage() -> None:
    steps = [Step("rerank", 2, 2, 0.5, {"reranker": "onnx:mini"}, ("1 passage was cut",), (("a.md", 0), ("c.md", 2)))]
    value = checked(written("json", of_stages([found("a"), found("c")], steps), explain=True))
    assert value["stages"][-1]["options"] == {"reranker": "onnx:mini"}
    assert value["stages"][-1]["warnings"] == ["1 passage was cut"]


@pytest.mark.spec("C11", "I23", "P9")
def test_json_has_parents_and_extracts() -> None:
    parent = replace(hit(), parent=Parent(2, (7, 8)), compressed_text="Reset.")
    (one,) = checked(written("json", result(parent)))["hits"]
    assert one["parent"] == {"index": 2, "children": [7, 8]}
    assert (one["compressed_text"], one["text"].startswith("Reset the torque")) == ("Reset.", True)


@pytest.mark.spec("C11")
def test_lines_stand_in_the_final_order_with_the_rank_of_relevance() -> None:
    lines = [json.loads(line) for line in written("jsonl", staged()).splitlines()]
    assert [(line["rank"], line["position"], line["document_id"]) for line in lines] == [
        (1, 1, "a.md"),
        (3, 2, "c.md"),
        (2, 3, "e.md"),
    ]
    for name, delimiter in (("csv", ","), ("tsv", "\t")):
        rows = list(csv.DictReader(io.StringIO(written(name, staged()), newline=""), delimiter=delimiter))
        assert [(row["rank"], row["document_id"]) for row in rows] == [("1", "a.md"), ("3", "c.md"), ("2", "e.md")]
    assert written("paths", staged()) == "a.md\nc.md\ne.md\n"
    extract = replace(hit(), compressed_text="Reset.")
    (row,) = csv.DictReader(io.StringIO(written("csv", result(extract)), newline=""))
    assert (row["compressed_text"], row["text"]) == ("Reset.", extract.chunk.text)


# --------------------------------------------------------------------------------------------------------- for people


@pytest.mark.spec("C2", "P10")
@pytest.mark.parametrize("name", ["table", "plain", "md"])
def test_a_reordered_list_says_so_and_keeps_the_ranks(name: str) -> None:
    """Case D47: the table states it."""
    text = shown(name, staged())
    assert REORDERED.lower() in text.lower()
    assert REORDERED.lower() not in shown(name, staged(reordered=False)).lower()
    ranks = {"table": r"^ *(\d) +0\.", "plain": r"^(\d)\. ", "md": r"\(rank (\d), "}[name]
    assert re.findall(ranks, text, re.MULTILINE) == ["1", "3", "2"]


@pytest.mark.spec("C2", "P10")
@pytest.mark.parametrize("width", [40, 72, 80])
def test_a_narrow_table_says_so_too(width: int) -> None:
    text = shown("table", staged(), width)
    assert REORDERED in " ".join(text.split())
    assert max(map(len, text.split("\n"))) <= width


def test_a_markdown_list_counts_positions() -> None:
    assert re.findall(r"^(\d)\. ", shown("md", staged()), re.MULTILINE) == ["1", "2", "3"]


@pytest.mark.spec("C8")
def test_explained_a_hit_shows_its_journey() -> None:
    lines = [line.strip() for line in shown("plain", staged(), explain=True).splitlines()]
    at = lines.index("= relative 0.7000 = bm25 0.3500 + dense 0.3500")
    assert lines[at + 1 : at + 3] == [
        "= mmr 0.2250 = relevance 0.3500 + likeness -0.1250 (most like a.md#0, cosine 0.25)",
        "c.md#2: rank 3 → 2 by redundancy → 3 by mmr; place 2 by reorder",
    ]
    assert "a.md#0: rank 1" in lines
    assert "e.md#4: rank 5 → 4 by redundancy → 2 by mmr; place 3 by reorder" in lines


@pytest.mark.spec("C8")
@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_has_the_journey_the_stages_and_the_drops(width: int) -> None:
    text = shown("table", staged(), width, explain=True)
    assert max(map(len, text.split("\n"))) <= width
    words = " ".join(text.split())
    for part in (
        "mmr: 5 in, 4 out, 0.4 ms (picks 4, candidates 15, lambda 0.5)",
        "dropped: 3",
        "b.md#1 redundancy: cosine 0.97 with a.md#0, at or above 0.95",
        "d.md#3 budget: needs 300 tokens, 120 are left",
    ):
        assert part in words
    assert width < 200 or "= mmr 0.2250 = relevance 0.3500 + likeness -0.1250 (most like a.md#0, cosine 0.25)" in words


@pytest.mark.spec("C8")
def test_a_single_part_and_a_note_without_a_score() -> None:
    first = found("a").rescored("rerank", "rerank", {"reranker": 0.7213}, "logit 0.9512")
    second = found("b").marked("rerank", "not judged: the reply held no number")
    steps = [step("rerank", "ab", "ab")]
    lines = [line.strip() for line in shown("plain", of_stages([first, second], steps), explain=True).splitlines()]
    assert "= rerank 0.7213 (logit 0.9512)" in lines
    assert "rerank: not judged: the reply held no number" in lines
    assert "1. a.md:12-13  rerank 0.7213  Reset" in lines
    assert "2. b.md:12-13  relative 0.8000  Reset" in lines


@pytest.mark.spec("C8", "R2")
def test_the_sums_of_the_arms_are_those_of_retrieval_not_of_what_came_after() -> None:
    lines = shown("plain", staged(), explain=True).splitlines()
    assert "    = relative 0.9000 = bm25 0.4500 + dense 0.4500" in lines
    lone = hit().rescored("rerank", "rerank", {"reranker": 0.5})
    assert (
        "    = bm25 2.5000 = torque 1.5000 + sensor 1.0000" in shown("plain", result(lone), explain=True).splitlines()
    )


@pytest.mark.spec("C2", "I23", "P7")
def test_a_parent_shows_its_lines_and_which_chunks_it_stands_for() -> None:
    one = replace(hit(start_line=3, end_line=90), parent=Parent(0, (7, 8, 9)))
    for name in ("table", "plain", "md"):
        words = " ".join(shown(name, result(one)).split())
        assert "handbook/leave.md:3-90" in words
        assert "parent of #7, #8, #9" in words
    many = replace(one, parent=Parent(0, tuple(range(12))))
    assert "[parent of #0, #1, #2, #3, #4 and 7 more]" in shown("plain", result(many))


@pytest.mark.spec("C2", "P9")
def test_an_extract_is_shown_as_one_and_in_full_the_whole() -> None:
    one = replace(hit("Reset the torque sensor. " * 100), compressed_text="Hold the torque button.")
    for name in ("table", "plain", "md"):
        short = shown(name, result(one))
        assert "Hold the torque button." in short
        assert "extract of 2,500 characters" in short
        assert "Reset the" not in short
        whole = shown(name, result(one), full=True)
        assert "Reset the torque sensor." in whole
        assert "extract" not in whole


@pytest.mark.spec("C2", "P9")
def test_the_terms_of_the_query_are_marked_in_an_extract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;33mtorque\x1b[0m" in drawn(replace(hit("x"), compressed_text="the torque button"))


@pytest.mark.spec("C13")
@pytest.mark.parametrize("name", ["table", "plain", "md"])
def test_notes_and_reasons_are_drawn_inert(name: str) -> None:
    hostile = "most like \x1b[31mx\u202e.md#0\nforged: line"
    one = found("a").rescored("mmr", "mmr", {"relevance": 0.5, "likeness": 0.0}, hostile)
    drop = Drop(found("b"), "redundancy", hostile)
    text = "".join(
        piece.decode() if isinstance(piece, bytes) else piece
        for piece in render(
            name, Reply(result=of_stages([one], [step("mmr", "ab", "a")], (drop,)), width=200, explain=True)
        )
    )
    assert "\u202e" not in text
    assert "\x1b[31m" not in text
    assert "\nforged" not in text


# --------------------------------------------------------------------------------------------------------------- TREC


def order_of(run: str, documents: list[str]) -> list[str]:
    """The documents as an evaluator orders them: the reciprocal rank of each, were it the only relevant one."""
    ranked = list(ir_measures.read_trec_run(io.StringIO(run)))  # type: ignore[no-untyped-call]
    places = {
        document: ir_measures.calc_aggregate([ir_measures.RR], [ir_measures.Qrel("1", document, 1)], ranked)[
            ir_measures.RR
        ]
        for document in documents
    }
    return sorted(documents, key=lambda document: -places[document])


def ranked_hits(scores: list[float]) -> list[Hit]:
    names = "abcdefghijklmn"  # equal scores would stand the other way round: trec_eval takes the greater id first
    return [replace(hit(document_id=name, score=1.0), score=score) for name, score in zip(names, scores, strict=False)]


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    "scores",
    [
        [0.45, 0.2, 0.225],  # MMR: what is picked third has more than the second
        [0.5, 0.5, 0.5, 0.1],
        [0.9, 12.25, 0.8],  # a hit without a judgement keeps the score of retrieval
        [0.0, 0.0, -0.0],
        [-3.0, -3.0, -2.0],
        [0.1 + 1e-17, 0.1, 0.1 - 1e-12],  # equal as 32-bit numbers
        [1e-30, 1e-30, 1e-30],
        [3e8, 3e8, 2.5],
    ],
)
def test_an_evaluator_reads_the_order_of_the_ranks(scores: list[float]) -> None:
    hits = ranked_hits(scores)
    documents = [one.chunk.document_id for one in hits]
    run = written("trec", result(*hits))
    assert [line.split()[2] for line in run.splitlines()] == documents
    assert order_of(run, documents) == documents


@pytest.mark.spec("C11")
@given(scores=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=14))
@settings(max_examples=60, deadline=None)
def test_the_scores_of_a_run_fall_as_32_bit_numbers(scores: list[float]) -> None:
    import numpy as np

    run = written("trec", result(*ranked_hits(scores)))
    read = [np.float32(float(line.split()[4])) for line in run.splitlines()]
    assert all(after < before for before, after in pairwise(read))


@pytest.mark.spec("C11")
def test_a_score_that_falls_is_the_true_one_and_a_rise_is_told() -> None:
    run = written("trec", result(*ranked_hits([0.45, 0.2, 0.225, 0.1])))
    first, second, third, fourth = (float(line.split()[4]) for line in run.splitlines())
    assert (first, second, fourth) == (0.45, 0.2, 0.1)
    assert 0.2 - 1e-6 < third < 0.2
    said = "scores that do not fall with the rank are written as the next lower number: trec_eval sorts by score"
    assert remark("trec", result(*ranked_hits([0.45, 0.2, 0.225]))) == said
    assert remark("trec", result(*ranked_hits([0.5, 0.5, 0.1]))) == ""
    assert remark("json", result(*ranked_hits([0.45, 0.2, 0.225]))) == ""


@pytest.mark.spec("C11", "P10")
def test_a_run_is_in_the_order_of_relevance_however_the_list_was_reordered() -> None:
    """The document of the best rank is the best, and has the highest score of its chunks."""
    lines = written("trec", staged()).splitlines()
    assert [line.split()[2] for line in lines] == ["a.md", "e.md", "c.md"]
    first, second = picked("a", 0.3, 0.0), picked("b", 0.2, 0.0)
    again = replace(picked("c", 0.35, 0.0), chunk=replace(picked("c", 0, 0).chunk, document_id="a.md"))
    lines = written("trec", result(first, second, again)).splitlines()
    assert [line.split()[2:5] for line in lines] == [["a.md", "1", "0.35"], ["b.md", "2", "0.2"]]
