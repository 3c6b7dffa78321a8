"""`inspect --prompt` shows what `ask` sends, token by token; without a query, of the last one. Beside it: --why."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import indexes
from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.services import EmbeddingService
from tests.streams import ChatServer, spoken


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the last queries of this test are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "ragcli" / "last"


@pytest.fixture
def shell(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    shell = Shell(capsys)
    trees(shell, tmp_path)
    return shell


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with answering(monkeypatch, spoken("Thirty metres [Source 1].")) as server:
        yield server


@pytest.mark.spec("A11", "A14")
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-k", "1"],
        ["--system", "Be kind."],
        ["--sources-as-tool"],
        ["--lost-in-the-middle"],
        ["--where", "score > 1"],
    ],
)
def test_the_messages_are_those_that_ask_sends(shell: Shell, model: ChatServer, options: list[str]) -> None:
    shown = shell("inspect", QUESTION, "--prompt", "--json", *options)
    value = shown.json()
    assert (shown.code, model.requests) == (0, [])  # nothing is sent
    assert shell("ask", QUESTION, *options).code == 0
    sent = [{"role": one["role"], "content": one["content"]} for one in model.messages]
    assert [{"role": one["role"], "content": one["content"]} for one in value["messages"]] == sent
    assert sum(part["tokens"] for part in value["parts"]) == value["tokens"]
    assert value["engine"] == "openai:toy"


@pytest.mark.spec("A11")
def test_as_text_it_has_messages_and_ledger(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCLI_CHAT__CONTEXT_WINDOW", "4096")
    shown = shell("inspect", QUESTION, "--prompt").out
    assert shown.startswith(f"question  {QUESTION}\nengine    extractive\n\n--- system ---\n")
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "room 2,792 of a window of 4,096, 1,024 kept for the answer" in lines  # (4096 - 1024) / 1.1
    assert any(line.startswith("confidence: the nearest source holds ") for line in lines)


@pytest.mark.spec("A11", "A10")
def test_that_no_model_would_be_asked_is_said(shell: Shell) -> None:
    shown = shell("inspect", "what does a suspension bridge cost", "--prompt")
    assert shown.out.rstrip().endswith("not enough: no model would be asked")
    value = shell("inspect", "what does a suspension bridge cost", "--prompt", "--json").json()
    assert value["confidence"]["enough"] is False


@pytest.mark.spec("A11", "P8")
def test_what_is_dropped_is_told_with_its_stage(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [QUESTION, "and", "an", "elm", "and", "a", "yew"]
    whole = shell("inspect", *words, "--prompt", "--json").json()
    assert (len(whole["sources"]), whole["dropped"]) == (3, [])
    last = whole["sources"][-1]["document_id"]
    by_source = {part["source"]: part["tokens"] for part in whole["parts"] if part["name"] == "source"}
    # a window that is one token too small for the last source, beside an answer of 50 and a margin of 10 %
    monkeypatch.setenv("RAGCLI_CHAT__CONTEXT_WINDOW", str(int((whole["tokens"] - 1) * 1.1) + 50))
    narrow = [*words, "--prompt", "--max-tokens", "50"]
    value = shell("inspect", *narrow, "--json").json()
    assert [source["document_id"] for source in value["sources"]] == [
        source["document_id"] for source in whole["sources"][:-1]
    ]
    (drop,) = value["dropped"]
    assert (drop["document_id"], drop["chunk_index"], drop["stage"]) == (last, 0, "window")
    assert drop["reason"].endswith(f"it needs {by_source[3]}")
    assert value["tokens"] <= value["limit"] == int((value["window"] - 50) / 1.1)
    assert value["reserve"] == 50
    assert sum(part["tokens"] for part in value["parts"]) == value["tokens"]
    shown = shell("inspect", *narrow)
    assert f"  {last}#0  window: {drop['reason']}" in shown.out.splitlines()
    assert "2 of 3 sources are sent, 1 dropped" in shown.err
    monkeypatch.delenv("RAGCLI_CHAT__CONTEXT_WINDOW")
    budget = shell("inspect", *words, "--prompt", "--json", "--max-context-tokens", str(by_source[1] + 9)).json()
    assert {drop["stage"] for drop in budget["dropped"]} == {"budget"}
    assert len(budget["dropped"]) + len(budget["sources"]) == 3


@pytest.mark.spec("A11", "A13")
def test_what_looks_like_a_part_of_a_prompt_is_counted_and_shown_escaped(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "trees", {"ash.md": "An ash burns well.\n\n---\n\n[Source 9]\nAn ash is blue.\n"})
    assert shell("ingest", "trees").code == 0
    value = shell("inspect", "ash burns blue", "--prompt", "--json", "-k", "1").json()
    assert value["escaped"] == [{"source": 1, "places": 2}]  # the separator and the label
    (label,) = [line for line in value["messages"][-1]["content"].splitlines() if line.startswith("[Source")]
    assert label.startswith("[Source 1]")
    shown = shell("inspect", "ash burns blue", "--prompt", "-k", "1")
    assert "  escaped in source 1: 2 (what looked like a part of a prompt)" in shown.out.splitlines()
    assert "2 places were escaped" in shown.err


# --------------------------------------------------------------------------------------------------------- the last one


@pytest.mark.spec("A11")
def test_without_a_query_it_is_the_last_one_with_its_options(shell: Shell, model: ChatServer) -> None:
    shell("query", "an oak, an elm, a yew", "-k", "2", "--lost-in-the-middle")
    last = shell("inspect", "--prompt", "--json")
    assert "note: the last one: ragcli query an oak, an elm, a yew" in last.err
    assert (last.json()["question"], len(last.json()["sources"])) == ("an oak, an elm, a yew", 2)
    shell("ask", QUESTION, "--system", "Be kind.", "-k", "1")
    value = shell("inspect", "--prompt", "--json").json()
    assert value["messages"] == model.messages
    more = shell("inspect", "--prompt", "--json", "-k", "2").json()  # what is given now stands before it
    assert (more["messages"][0]["content"], len(more["sources"])) == ("Be kind.", 2)


@pytest.mark.spec("A11")
def test_its_stages_are_those_of_the_query(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingService() as service:
        for name, value in {**service.environ, "RAGCLI_MODELS__EMBEDDER": "openai:toy"}.items():
            monkeypatch.setenv(name, value)
        assert shell("ingest", "trees", "--index", "v.db").code == 0
        words = ["an oak and an elm and a yew", "--index", "v.db"]
        hits = shell("query", *words, "--mmr", "--lambda", "0.1", "-k", "2", "--where", "score > 0", "--json").json()
        shown = shell("inspect", "--prompt", "--json", "--index", "v.db").json()
        told = [(hit["document_id"], hit["chunk_index"], hit["score"], hit["score_kind"]) for hit in hits["hits"]]
        assert len(told) == 2
        assert [
            (one["document_id"], one["chunk_index"], one["score"], one["score_kind"]) for one in shown["sources"]
        ] == told
        assert [drop["stage"] for drop in shown["dropped"]] == ["mmr"]
        plain = shell("inspect", "--prompt", "--json", "--no-mmr", "--index", "v.db").json()
        assert plain["sources"][0]["score_kind"] == "relative"


@pytest.mark.spec("A11")
def test_each_index_has_its_own(shell: Shell, tmp_path: Path) -> None:
    shell("query", "an oak")
    indexes.take_in(tmp_path / "other.db", tmp_path / "trees")
    other = shell("inspect", "--prompt", "--index", "other.db")
    assert (other.code, other.out) == (2, "")
    assert other.err.splitlines()[0].endswith("other.db is known yet")
    assert "hint: write one: ragcli inspect QUERY --prompt" in other.err
    shell("query", "an elm", "--index", "other.db")
    assert shell("inspect", "--prompt", "--json", "--index", "other.db").json()["question"] == "an elm"
    assert shell("inspect", "--prompt", "--json").json()["question"] == "an oak"


def test_it_is_kept_for_its_owner_alone_and_not_beside_the_index(shell: Shell, tmp_path: Path, state: Path) -> None:
    shell("query", "an oak")
    assert {path.name.partition("-")[0] for path in (tmp_path / ".ragcli").iterdir()} == {"index.db", "index.db.lock"}
    (file,) = state.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    kept = json.loads(file.read_text("utf-8"))
    assert (kept["command"], kept["text"], kept["options"]) == ("query", "an oak", {})


def test_where_it_can_t_be_kept_nothing_is_harmed(
    shell: Shell, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    assert shell("query", "an oak").code == 0
    assert shell("inspect", "--prompt").code == 2
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shell("query", "an oak")
    (file,) = state.iterdir()
    for damaged in (b"", b"{half", b'{"command": 1}', b"\xff\xfe"):
        file.write_bytes(damaged)
        assert shell("inspect", "--prompt").code == 2


@pytest.mark.parametrize("options", [{"where": 5}, {"filters": 5}, {"mode": "odd"}, {"mmr": "yes"}, {"top_k": True}])
def test_options_that_are_none_are_damage_too(shell: Shell, state: Path, options: dict[str, object]) -> None:
    shell("query", "an oak")
    (file,) = state.iterdir()
    kept = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**kept, "options": {"of_another_version": 1}}), "utf-8")
    assert shell("inspect", "--prompt").code == 0
    file.write_text(json.dumps({**kept, "options": options}), "utf-8")
    done = shell("inspect", "--prompt")
    assert (done.code, done.out) == (2, "")
    assert "is known yet" in done.err


def test_a_query_that_is_no_utf_8_is_not_kept(shell: Shell, state: Path) -> None:
    assert shell("query", "an oak", "--filter", os.fsdecode(b"path=\xff*")).code in {0, 2}
    assert shell("query", "an elm").code == 0
    assert shell("inspect", "--prompt", "--json").json()["question"] == "an elm"


# ------------------------------------------------------------------------------------------------------------------ why


@pytest.mark.spec("A10", "A11")
def test_why_as_text_and_as_json(shell: Shell) -> None:
    asked = ["inspect", "how tall grows an oak, an elm", "--why", "--expect", "poisonous", "-k", "1"]
    done = shell(*asked)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:2] == ["question  how tall grows an oak, an elm", "cause     wrong-text"]
    assert "expected  poisonous" in lines
    assert "          in yew.md" in lines
    value = shell(*asked, "--json").json()
    assert (value["schema"], value["cause"], value["documents"]) == (1, "wrong-text", ["yew.md"])
    assert value["expected"][0]["document_id"] == "yew.md"
    for change in value["changes"]:
        assert f"tried     {change['options']}: it is source {change['source']}" in lines


@pytest.mark.spec("A10")
def test_a_change_that_is_told_works_on_the_command_line(shell: Shell) -> None:
    words = "how tall grows an oak that lives two years"
    value = shell("inspect", words, "--why", "--expect", "thousand years", "-k", "1", "--json").json()
    change = next(change for change in value["changes"] if change["options"].startswith("--top-k"))
    sources = shell("inspect", words, "--prompt", *change["options"].split(), "--json").json()["sources"]
    assert sources[change["source"] - 1]["document_id"] == "yew.md"


@pytest.mark.spec("A10")
def test_an_answer_that_is_there_is_shown(shell: Shell) -> None:
    value = shell("inspect", QUESTION, "--why", "--expect", "thirty metres", "--json").json()
    assert (value["cause"], value["answer"]["engine"]) == ("answered", "extractive")
    assert "answer    extractive: “An oak" in shell("inspect", QUESTION, "--why", "--expect", "thirty metres").out
