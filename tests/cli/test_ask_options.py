"""The options of `ask`: those of a query mean the same to it (spec A14), and what changes nothing says so."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.cli import main
from ragcli.cli.answer_options import FLAGS as OF_AN_ANSWER
from ragcli.cli.answer_options import NEEDS_MODEL
from ragcli.cli.retrieval import FLAGS, Flag
from tests import indexes
from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.services import EmbeddingService
from tests.streams import ChatServer, spoken

WORDS = "how tall grows an oak, an elm, a yew"
TEXTS = {
    "oak.md": "# Oak\n\nAn oak grows thirty metres tall.\n\n## Use\n\nIts acorns feed jays, and an oak feeds pigs.\n",
    "oak2.md": "# Oak\n\nAn oak grows thirty metres tall, or forty.\n",
    "elm.md": "# Elm\n\nAn elm dies of a fungus. An elm grows tall.\n\n## Wood\n\nElm resists water.\n",
    "yew.md": "# Yew\n\nA yew lives two thousand years.\n\n## Berries\n\nAll of a yew but the aril is poisonous.\n",
    "granite.md": "# Granite\n\nGranite is hard.\n",
}
# a value for each option of a retrieval, by the name of its flag
GIVEN: Mapping[str, Sequence[str]] = {
    "top_k": ["--top-k", "2"],
    "mode": ["--mode", "vector"],
    "fusion": ["--fusion", "rrf"],
    "weights": ["--weights", "bm25=0.3,dense=0.7"],
    "exact": ["--exact"],
    "candidates": ["--candidates", "3"],
    "filters": ["--filter", "path=*k*.md"],
    "where": ["--where", 'document_id != "oak.md"'],
    "min_score": ["--min-score", "0.3"],
    "per_document": ["--per-document", "1"],
    "redundancy_filter": ["--redundancy-filter"],
    "redundancy_threshold": ["--redundancy-threshold", "0.6"],
    "mmr": ["--mmr"],
    "mmr_lambda": ["--lambda", "0.2"],
    "mmr_candidates": ["--mmr-candidates", "3"],
    "mmr_relevance": ["--mmr-relevance", "cosine"],
    "rerank": ["--no-rerank"],
    "reranker": ["--reranker", "python:tests.cli.test_ask_options:short_first"],
    "rerank_model": ["--rerank-model", "any"],
    "parents": ["--no-parents"],
    "max_context_tokens": ["--max-context-tokens", "70"],
    "compress": ["--compress", "extractive"],
    "lost_in_the_middle": ["--lost-in-the-middle"],
}


def short_first(query: str, passages: Sequence[str]) -> list[float]:
    """A reranker."""
    return [1 / len(passage) for passage in passages]


class Said(NamedTuple):
    code: int
    out: str
    err: str


Ask = Callable[..., Said]


@pytest.fixture(scope="module")
def ragcli(tmp_path_factory: pytest.TempPathFactory, pulled: Callable[[str], Path]) -> Iterator[Ask]:
    """Runs a command on an index of five texts with vectors and parents."""
    folder = tmp_path_factory.mktemp("trees")
    indexes.write(folder / "d", TEXTS)

    def run(*arguments: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, "--index", str(folder / "index.db")])
        return Said(code, out.getvalue(), err.getvalue())

    with EmbeddingService() as service, pytest.MonkeyPatch.context() as patch:
        for name, value in {**service.environ, "RAGCLI_MODELS": str(pulled("cl100k_base").parent)}.items():
            patch.setenv(name, value)
        patch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:toy")
        assert run("ingest", str(folder / "d"), "--chunk-size", "60", "--chunk-overlap", "0", "--parents").code == 0
        yield run


def same(ragcli: Ask, options: Sequence[str]) -> list[dict[str, Any]]:
    """The hits of a query, which are the sources of an answer. Both commands end alike."""
    query = ragcli("query", WORDS, *options, "--json", "--explain")
    asked = ragcli("ask", WORDS, *options, "--json")
    if query.code:
        assert (asked.code, asked.err) == (query.code, query.err)
        return []
    assert asked.code in {0, 1}  # 1: no confident answer
    value, found = json.loads(asked.out), json.loads(query.out)
    sources = [{name: member for name, member in one.items() if name != "number"} for one in value["sources"]]
    assert sources == found["hits"]
    assert [one["number"] for one in value["sources"]] == list(range(1, len(sources) + 1))
    assert value["retrieval"]["dropped"] == found["dropped"]
    assert value["retrieval"]["mode"] == found["mode"]
    assert value["warnings"][: len(found["warnings"])] == found["warnings"]
    return sources


@pytest.mark.spec("A14")
def test_each_option_of_a_query_is_one_of_ask_and_means_the_same(ragcli: Ask) -> None:
    assert set(GIVEN) == set(FLAGS)  # a new one needs a row above
    plain = same(ragcli, [])
    assert len(plain) == 5
    for options in GIVEN.values():
        same(ragcli, options)
    assert len(same(ragcli, GIVEN["top_k"])) == 2
    assert {one["document_id"] for one in same(ragcli, GIVEN["filters"])} == {"oak.md", "oak2.md"}
    assert {one["score_kind"] for one in same(ragcli, GIVEN["reranker"])} == {"rerank"}
    assert same(ragcli, GIVEN["lost_in_the_middle"]) != plain


@pytest.mark.spec("A14")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(sorted(GIVEN)), min_size=2, max_size=6, unique=True))
def test_so_do_several_of_them(ragcli: Ask, names: list[str]) -> None:
    same(ragcli, [word for name in names for word in GIVEN[name]])


@pytest.mark.spec("A14", "C9")
@pytest.mark.parametrize(
    "options",
    [
        ["--top-k", "0"],
        ["--mode", "meaning"],
        ["--where", "score >"],
        ["--filter", "lang"],
        ["--lambda", "2"],
        ["--weights", "bm25"],
        ["--rerank"],
        ["--topk", "3"],
    ],
)
def test_so_do_mistakes(ragcli: Ask, options: list[str]) -> None:
    query, asked = (ragcli(name, WORDS, *options) for name in ("query", "ask"))
    assert (query.code, query.out) == (asked.code, asked.out) == (2, "")
    # the hint names the command
    assert query.err.replace("ragcli query", "ragcli ask") == asked.err
    assert asked.err.startswith("error: ")


# --------------------------------------------------------------------------------------------- the options of an answer


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "none")
    shell = Shell(capsys)
    trees(shell, tmp_path)
    return shell


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with answering(monkeypatch, spoken("Thirty metres [Source 1].")) as server:
        yield server


OF_A_MODEL: Mapping[str, Sequence[str]] = {
    "model": ["--model", "toy"],
    "base_url": ["--base-url", "http://127.0.0.1:1/v1"],
    "system": ["--system", "Be kind."],
    "temperature": ["--temperature", "0.5"],
    "max_tokens": ["--max-tokens", "77"],
    "seed": ["--seed", "3"],
    "sources_as_tool": ["--sources-as-tool"],
    "rewrite": ["--no-rewrite"],
}


def test_each_option_of_a_model_has_no_effect_on_extracts_and_that_is_said(shell: Shell) -> None:
    assert set(OF_A_MODEL) == set(NEEDS_MODEL)
    plain = shell("ask", QUESTION)
    assert "note: " not in plain.err
    for options in OF_A_MODEL.values():
        done = shell("ask", QUESTION, "--engine", "extractive", *options)
        assert done.out == plain.out
        assert f"note: {options[0]} has no effect: extracts need no language model (--model NAME)\n" in done.err


@pytest.mark.parametrize("option", [["--show-prompt"], ["--prompt-log", "log.jsonl"]])
def test_extracts_have_no_prompt_to_show(shell: Shell, option: list[str]) -> None:
    assert "note: no prompt to show: extracts need no language model" in shell("ask", QUESTION, *option).err


def test_an_option_of_a_query_without_effect_is_told_by_both(shell: Shell) -> None:
    for command in ("query", "ask"):
        assert "note: --lambda has no effect: MMR is off (--mmr)\n" in shell(command, QUESTION, "--lambda", "0.3").err


@pytest.mark.spec("A14", "C4")
def test_each_option_of_an_answer_stands_above_its_setting(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_of_others = {
        "CHAT__MODEL": "theirs", "CHAT__TEMPERATURE": "1.5", "ANSWER__SYSTEM": "Theirs.", "ANSWER__MAX_TOKENS": "9",
        "ANSWER__SEED": "9", "ANSWER__SOURCES_AS": "tool", "ANSWER__ENGINE": "extractive",
    }  # fmt: skip
    given = ("model", "temperature", "system", "max_tokens", "seed")
    options = [word for name in given for word in OF_A_MODEL[name]]
    with monkeypatch.context() as patch:  # undone before the fixture `model` undoes what it has set
        for name, value in settings_of_others.items():
            patch.setenv(f"RAGCLI_{name}", value)
        assert shell("ask", QUESTION, "--engine", "openai", *options).code == 0
    body = model.requests[-1].body
    assert {name: body[name] for name in ("model", "temperature", "max_tokens", "seed")} == {
        "model": "toy", "temperature": 0.5, "max_tokens": 77, "seed": 3,
    }  # fmt: skip
    assert body["messages"][0]["content"] == "Be kind."
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]  # as was set


@pytest.mark.spec("A14", "A2")
@pytest.mark.parametrize("name", ["top_k", "where", "filters", "per_document", "lost_in_the_middle"])
def test_what_the_model_reads_is_what_a_query_finds_in_that_order(name: str, shell: Shell, model: ChatServer) -> None:
    options = GIVEN[name]
    hits = shell("query", WORDS, *options, "--json").json()["hits"]
    assert shell("ask", WORDS, *options, "--always").code == 0
    prompt = model.messages[-1]["content"]
    labels = [line for line in prompt.splitlines() if line.startswith("[Source ")]
    assert labels == [f"[Source {number}] {hit['document_id']}, line 1" for number, hit in enumerate(hits, 1)]
    assert all(f"line 1\n\n{hit['text']}" in prompt for hit in hits)


def test_a_seed_that_is_not_given_is_not_sent(shell: Shell, model: ChatServer) -> None:
    assert shell("ask", QUESTION).code == 0
    assert set(model.requests[-1].body) == {
        "model", "messages", "temperature", "max_tokens", "stream", "stream_options",
    }  # fmt: skip


def test_every_option_of_an_answer_is_in_the_help(shell: Shell) -> None:
    text = shell("ask", "--help").out
    for flags in (FLAGS, OF_AN_ANSWER):
        for name, flag in flags.items():
            assert all(one in text for one in names(flag)), name


def names(flag: Flag) -> list[str]:
    """--stream and --no-stream of "--stream/--no-stream"."""
    (option,) = flag.kind.__metadata__
    return str(option.default).split("/")
