"""The flags of `ragcli query` that choose arms and their fusion: the settings they set, what is said of mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragcli.cli import common, main, query
from ragcli.options import Settings


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Settings]:
    """The settings of each query that is run, in a folder without an index."""
    monkeypatch.chdir(tmp_path)
    seen: list[Settings] = []
    begin = common.begin

    def watched(*arguments: Any) -> Any:
        session = begin(*arguments)
        seen.append(session.settings)
        return session

    monkeypatch.setattr(query, "begin", watched)
    return seen


@pytest.mark.spec("R1", "R3", "R5", "R6")
@pytest.mark.parametrize(
    ("flags", "key", "value"),
    [
        ("", "retrieval.mode", "hybrid"),
        ("--mode vector", "retrieval.mode", "vector"),
        ("--mode keyword", "retrieval.mode", "keyword"),
        ("", "retrieval.exact", False),
        ("--exact", "retrieval.exact", True),
        ("--candidates 40", "retrieval.candidate_count", 40),
        ("--min-score 0.2", "retrieval.min_score", 0.2),
        ("", "fusion.method", "relative"),
        ("--fusion rrf", "fusion.method", "rrf"),
        ("--fusion zscore", "fusion.method", "zscore"),
        ("--weights bm25=0.3,dense=0.7", "fusion.weights", {"bm25": 0.3, "dense": 0.7}),
        ("--weights dense=0", "fusion.weights", {"dense": 0.0}),
    ],
)
def test_a_flag_sets_its_setting(asked: list[Settings], flags: str, key: str, value: object) -> None:
    assert main(["query", "torque", *flags.split()]) == 3  # there is no index
    section, _, name = key.partition(".")
    assert getattr(getattr(asked[0], section), name) == value


@pytest.mark.spec("C4")
def test_without_the_flag_exact_is_as_the_file_says(asked: list[Settings], tmp_path: Path) -> None:
    (tmp_path / "ragcli.yaml").write_text("retrieval: {exact: true}\n", encoding="utf-8")
    assert main(["query", "torque"]) == 3
    assert asked[0].retrieval.exact


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--weights dens=1", "unknown arm 'dens'; did you mean dense?"),
        ("--weights bm25", "fusion.weights must be weights of arms, such as bm25=0.3,dense=0.7, not 'bm25'"),
        ("--weights bm25=x", "the weight of bm25 must be a number, not 'x'"),
        ("--weights bm25=-1", "fusion.weights.bm25 = -1.0 is out of range: 0 to 1000000"),
        ("--weights bm25=0,dense=0", "fusion.weights = {'bm25': 0.0, 'dense': 0.0} is out of range: at least one"),
        ("--fusion rff", "rff"),
        ("--mode hybird", "hybird"),
        ("--candidates 0", "retrieval.candidate_count = 0 is out of range: 1 to"),
        ("--min-score 2", "retrieval.min_score = 2.0 is out of range: -1 to 1"),
        ("--weight dense=1", "--weights"),
    ],
)
def test_a_mistake_ends_with_code_2_and_one_error(
    asked: list[Settings], capfd: pytest.CaptureFixture[str], flags: str, said: str
) -> None:
    assert main(["query", "torque", *flags.split()]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(re.findall(r"^error: ", err, re.MULTILINE)) == 1
    assert said in err


@pytest.mark.spec("C1")
def test_the_help_says_what_each_flag_means(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--help"]) == 0
    words = " ".join(capfd.readouterr().out.split())
    for flag in ("--mode", "--fusion", "--weights", "--exact", "--candidates"):
        assert flag in words
    assert "BM25 hits and fused scores are not cut by it" in words
    assert "--weights bm25=0.3,dense=0.7" in words
