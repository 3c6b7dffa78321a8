"""The flags of `ragcli query` that choose arms and their fusion: the settings they set, what is said of mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragcli.cli import common, main, query
from ragcli.cli.app import build
from ragcli.cli.retrieval import FLAGS, given
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
        ("", "retrieval.mmr", False),
        ("--mmr", "retrieval.mmr", True),
        ("--mmr --lambda 0.3", "retrieval.mmr_lambda", 0.3),
        ("--mmr --mmr-candidates 30", "retrieval.mmr_candidate_count", 30),
        ("--redundancy-filter", "retrieval.redundancy_filter", True),
        ("--redundancy-filter --redundancy-threshold 0.9", "retrieval.redundancy_threshold", 0.9),
        ("", "retrieval.rerank", None),
        ("--rerank", "retrieval.rerank", True),
        ("--no-rerank", "retrieval.rerank", False),
        ("--reranker vllm", "rerank.reranker", "vllm"),
        ("--reranker onnx --rerank-model mini/", "rerank.model", "mini/"),
        ("", "retrieval.parent_document", None),
        ("--parents", "retrieval.parent_document", True),
        ("--no-parents", "retrieval.parent_document", False),
        ("--max-context-tokens 2000", "retrieval.max_context_tokens", 2000),
        ("--compress extractive", "retrieval.compression", "extractive"),
        ("--lost-in-the-middle", "retrieval.lost_in_the_middle", True),
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


@pytest.mark.spec("C4")
def test_what_the_file_turns_on_a_flag_turns_off(asked: list[Settings], tmp_path: Path) -> None:
    text = "retrieval: {mmr: true, redundancy_filter: true, lost_in_the_middle: true}\n"
    (tmp_path / "ragcli.yaml").write_text(text, encoding="utf-8")
    assert main(["query", "torque", "--no-mmr", "--no-redundancy-filter", "--no-lost-in-the-middle"]) == 3
    chosen = asked[0].retrieval
    assert (chosen.mmr, chosen.redundancy_filter, chosen.lost_in_the_middle) == (False, False, False)


@pytest.mark.spec("C7", "P2")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--lambda 0.3", ["--lambda has no effect: MMR is off (--mmr)"]),
        ("--lambda 0", ["--lambda has no effect: MMR is off (--mmr)"]),
        ("--no-mmr --mmr-candidates 9", ["--mmr-candidates has no effect: MMR is off (--mmr)"]),
        (
            "--redundancy-threshold 0.9",
            ["--redundancy-threshold has no effect: the redundancy filter is off (--redundancy-filter)"],
        ),
        ("--reranker jina --no-rerank", ["--reranker has no effect: reranking is off (--rerank)"]),
        ("--rerank-model x", ["--rerank-model has no effect: there is no reranker (--reranker)"]),
        ("--mode keyword --exact", ["--exact has no effect: keyword search compares no vectors (--mode hybrid)"]),
        ("--mode vector --fusion rrf", ["--fusion has no effect: vector search fuses nothing (--mode hybrid)"]),
        ("--mmr --lambda 0.3 --redundancy-filter --redundancy-threshold 0.9", []),
        ("--mode vector --min-score 0.2 --exact", []),
        ("--reranker jina --rerank-model x", []),
        ("", []),
    ],
)
def test_a_flag_without_effect_is_told(
    asked: list[Settings], capfd: pytest.CaptureFixture[str], flags: str, said: list[str]
) -> None:
    main(["query", "torque", *flags.split()])
    lines = capfd.readouterr().err.splitlines()
    assert [line.removeprefix("note: ") for line in lines if line.startswith("note: ")] == said


def test_what_the_file_says_is_no_flag_without_effect(
    asked: list[Settings], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ragcli.yaml").write_text("retrieval: {mmr_lambda: 0.3}\n", encoding="utf-8")
    main(["query", "torque"])
    assert "no effect" not in capfd.readouterr().err


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--lambda 1.5", "retrieval.mmr_lambda = 1.5 is out of range: 0 to 1"),
        ("--lambda nan", "retrieval.mmr_lambda = nan is out of range: 0 to 1"),
        ("--redundancy-threshold 2", "retrieval.redundancy_threshold = 2.0 is out of range: -1 to 1"),
        ("--mmr-candidates 0", "retrieval.mmr_candidate_count = 0 is out of range: 1 to"),
        ("--max-context-tokens 0", "retrieval.max_context_tokens = 0 is out of range: 1 or more"),
        ("--compress extractiv", "extractiv"),
        ("--lamda 0.5", "--lambda"),
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
    for flag in ("--mode", "--fusion", "--weights", "--exact", "--candidates", "--mmr / --no-mmr", "After retrieval:"):
        assert flag in words
    assert "BM25 hits and fused scores are not cut by it" in words
    assert "--weights bm25=0.3,dense=0.7" in words


def parameters(name: str) -> dict[str, Any]:
    """The options of a command, by name, as click has them."""
    command = build().get_command(None, name)
    return {one.name: one for one in command.params}


@pytest.mark.spec("A11", "C1")
def test_every_command_that_retrieves_has_the_same_options() -> None:
    queried, inspected = parameters("query"), parameters("inspect")
    for name in FLAGS:
        assert (queried[name].opts, queried[name].secondary_opts) == (
            inspected[name].opts,
            inspected[name].secondary_opts,
        )
        assert (queried[name].help, queried[name].default) == (inspected[name].help, None)


def test_every_option_sets_a_setting_that_there_is() -> None:
    for flag in FLAGS.values():
        section, _, name = flag.setting.partition(".")
        assert hasattr(getattr(Settings(), section), name)


def test_options_are_named_as_they_are_written() -> None:
    assert given({"top_k": 3, "mmr": True, "rerank": False, "parents": None, "filters": [], "where": ""}) == [
        *("--top-k", "--mmr", "--no-rerank", "--where")
    ]
