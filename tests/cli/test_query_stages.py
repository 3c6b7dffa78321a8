"""A query through real stages on a real index, worked by hand: what JSON, text and `inspect --trace` say of each chunk.

Five directions in a plane (tests/cases/plane.py). The redundancy filter at 0.9988 drops `c`: cos 2° = 0.9994 with `b`
(`b` stays: cos 3° = 0.9986 with `a`). MMR with lambda 0.3 picks `a`, the best; then `e`: 0.3 cos 100° - 0.7 cos 95° =
0.0089 (`d` -0.2515, `b` -0.4019); then `d`: 0.3 cos 60° - 0.7 cos 40° = -0.3862 (`b` still -0.4019). Reordered, the
ranks 1, 2, 3 stand as 1, 3, 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, radians
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragcli.explain import fate
from ragcli.pipeline import Pipeline
from tests import indexes
from tests.cases.plane import directions, records
from tests.cli.test_formats import SCHEMA
from tests.commands import Shell
from tests.services import EmbeddingService

ASKED = (
    *("query", "--mode", "vector", "--min-score", "-1", "-k", "3", "--redundancy-filter", "--redundancy-threshold"),
    *("0.9988", "--mmr", "--lambda", "0.3", "--lost-in-the-middle"),
)


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shell]:
    """A shell in a folder whose index holds the five directions."""
    with EmbeddingService() as service:
        service.rule = directions
        monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:toy")
        for name, value in service.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        indexes.write(tmp_path, {"records.jsonl": records()})
        shell = Shell(capfd)
        assert shell("ingest", "records.jsonl").code == 0
        yield shell


def cosine(degrees: float) -> float:
    return cos(radians(degrees))


@pytest.mark.spec("C8", "C11", "P12")
def test_json_says_of_every_chunk_why_it_is_where_it_is_or_why_it_is_gone(shell: Shell) -> None:
    value = shell("query", *ASKED, "--json").json()
    jsonschema.validate(value, SCHEMA)
    assert [(one["document_id"], one["rank"], one["position"]) for one in value["hits"]] == [
        ("a", 1, 1),
        ("d", 3, 2),
        ("e", 2, 3),
    ]
    a, d, e = value["hits"]
    assert [(stop["stage"], stop["rank_before"], stop["rank"]) for stop in a["trace"]] == [("mmr", 1, 1)]
    assert [(stop["stage"], stop["rank_before"], stop["rank"]) for stop in d["trace"]] == [
        ("redundancy", 4, 3),
        ("mmr", 3, 3),
        ("reorder", 3, 2),
    ]
    assert [(stop["stage"], stop["rank_before"], stop["rank"]) for stop in e["trace"]] == [
        ("redundancy", 5, 4),
        ("mmr", 4, 2),
        ("reorder", 2, 3),
    ]
    gone = {drop["document_id"]: (drop["stage"], drop["rank"]) for drop in value["dropped"]}
    assert gone == {"b": ("mmr", 2), "c": ("redundancy", 3)}


@pytest.mark.spec("C8", "R2", "P2")
def test_the_parts_of_each_score_add_up_to_it(shell: Shell) -> None:
    hits = shell("query", *ASKED, "--json").json()["hits"]
    wanted = {
        "a": (0.3 * cosine(5), 0.0),
        "d": (0.3 * cosine(60), -0.7 * cosine(40)),
        "e": (0.3 * cosine(100), -0.7 * cosine(95)),
    }
    for one in hits:
        (changed,) = [stop for stop in one["trace"] if stop["parts"]]
        parts = (changed["parts"]["relevance"], changed["parts"]["likeness"])
        assert parts == pytest.approx(wanted[one["document_id"]], abs=1e-3)  # vectors are stored as float16
        assert abs(sum(parts) - one["score"]) <= 1e-12
        assert abs(one["arms"]["dense"]["part"] - one["retrieval_score"]) <= 1e-12


@pytest.mark.spec("C8", "C2")
def test_the_text_says_the_same(shell: Shell) -> None:
    lines = [line.strip() for line in shell("query", *ASKED, "--explain").out.splitlines()]
    assert "a#0: rank 1" in lines
    assert "d#0: rank 4 → 3 by redundancy; place 2 by reorder" in lines
    assert "e#0: rank 5 → 4 by redundancy → 2 by mmr; place 3 by reorder" in lines
    assert "reordered: the best at both ends (lost in the middle)" in lines
    (redundant,) = [line for line in lines if line.startswith("c#0  redundancy: ")]
    assert "b#0" in redundant
    assert "0.9994" in redundant
    (unpicked,) = [line for line in lines if line.startswith("b#0  mmr: ")]
    assert "-0.40" in unpicked


@pytest.mark.spec("A11")
def test_trace_shows_each_stage_with_its_drops_and_its_order(shell: Shell) -> None:
    value = shell("inspect", *ASKED, "--trace", "--json").json()
    stages: dict[str, Any] = {stage["name"]: stage for stage in value["stages"]}
    assert list(stages)[-4:] == ["redundancy", "mmr", "cut", "reorder"]
    orders = {name: "".join(one["document_id"] for one in stage["order"]) for name, stage in stages.items()}
    assert [orders[name] for name in ("redundancy", "mmr", "cut", "reorder")] == ["abde", "aed", "aed", "ade"]
    for stage in stages.values():
        if stage["order"]:
            assert stage["in"] - stage["out"] == len(stage["dropped"])
            assert stage["out"] == len(stage["order"])
    text = shell("inspect", *ASKED, "--trace").out
    assert "\n    dropped: rank 3  c#0  " in text
    assert "\n    order: 1 4 3 (ranks before it)\n" in text
    assert "\n    order: 1 3 2 (ranks before it)\n" in text


@pytest.mark.spec("C8")
def test_what_became_of_a_chunk(shell: Shell, tmp_path: Path) -> None:
    from ragcli.options import RetrievalOptions

    options = RetrievalOptions(
        mode="vector",
        min_score=-1,
        top_k=3,
        redundancy_filter=True,
        redundancy_threshold=0.9988,
        mmr=True,
        mmr_lambda=0.3,
    )
    with Pipeline.open(indexes.index_of(tmp_path)) as pipeline:
        found = pipeline.retrieve("query", options)
    assert fate("e", 0, found).rank == 2
    gone = fate("c", 0, found)
    assert gone.drop is not None
    assert (gone.drop.stage, "b#0" in gone.reason) == ("redundancy", True)
    assert fate("z", 0, found).reason == "not among the candidates: dense gave 5 of 5 chunks"
