"""Conversations: `ask --chat`, `--history`, and the question that follows on another (spec A12, R27)."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Outcome, Shell
from tests.streams import CUT, ChatServer, Script, delta, event, failed, spoken, texts, whole

ANSWER = "Thirty metres [Source 1]."


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    shell = Shell(capsys)
    trees(shell, tmp_path)
    return shell


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with answering(monkeypatch, spoken(ANSWER)) as server:
        yield server


def piped(shell: Shell, monkeypatch: pytest.MonkeyPatch, text: str | bytes, *arguments: str) -> Outcome:
    """The command with this on its standard input."""
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    return shell(*arguments)


@pytest.mark.spec("A12", "A3")
def test_each_turn_sees_the_turns_before_it(shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = f"{QUESTION}\n\nhow tall grows an elm\n"
    done = piped(shell, monkeypatch, lines, "ask", "--chat", "--no-rewrite", "--json")
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert (done.code, first["question"], second["question"]) == (0, QUESTION, "how tall grows an elm")
    assert [message["role"] for message in model.requests[0].body["messages"]] == ["system", "user"]
    system, *turns, last = model.requests[1].body["messages"]
    assert system["role"] == "system"
    assert turns == [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
    assert last["content"].endswith("Question: how tall grows an elm")


@pytest.mark.spec("A12")
def test_a_question_that_fails_is_told_and_the_next_is_asked(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(spoken(ANSWER), failed(400, "no"), spoken(ANSWER))
    lines = f"{QUESTION}\nan oak?\nan elm?\n/exit\nnot asked\n"
    done = piped(shell, monkeypatch, lines, "ask", "--chat", "--no-rewrite", "--json", "--always")
    values = [json.loads(line) for line in done.out.splitlines()]
    assert [("error" in value) for value in values] == [False, True, False]
    assert "400 Bad Request" in values[1]["error"]
    assert done.code == 4
    turns = [message["content"] for message in model.messages[1:-1]]
    assert turns == [QUESTION, ANSWER]  # a question without an answer is no turn


@pytest.mark.spec("A12", "C9")
@pytest.mark.parametrize(
    ("second", "options", "said"),
    [
        (Script((event(delta("Thirty me")), CUT)), [], "warning: the answer is incomplete: "),
        (spoken("Thirty metres."), ["--strict-citations"], "error: --strict-citations: the answer cites no source"),
    ],
)
def test_an_answer_that_breaks_off_or_is_refused_is_shown_and_counts(
    second: Script, options: list[str], said: str, shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(spoken(ANSWER), second, spoken(ANSWER))
    lines = f"{QUESTION}\nan oak?\nan elm?\n"
    done = piped(shell, monkeypatch, lines, "ask", "--chat", "--no-rewrite", "--always", *options)
    assert done.code == 4
    assert done.out.count("Thirty me") == 3
    assert said in done.err
    turns = [message["content"] for message in model.messages[1:-1]]
    assert turns == [QUESTION, ANSWER, "an oak?", "Thirty me" if not options else "Thirty metres."]  # it is kept


@pytest.mark.spec("A12", "C9")
def test_that_nothing_was_found_is_no_failure_of_a_conversation(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = f"what does a suspension bridge cost\n{QUESTION}\n"
    done = piped(shell, monkeypatch, lines, "ask", "--chat", "--json")
    assert [json.loads(line)["outcome"] for line in done.out.splitlines()] == ["no-answer", "answered"]
    assert (done.code, len(model.requests)) == (0, 1)  # nor is it a turn: nothing is rewritten


@pytest.mark.spec("A12")
def test_the_first_question_may_stand_in_the_command(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = piped(shell, monkeypatch, "how tall grows an elm\n/quit\nnever\n", "ask", "--chat", "--no-rewrite", QUESTION)
    assert done.code == 0
    assert [text.rpartition("Question: ")[2] for text in texts(model.requests)] == [QUESTION, "how tall grows an elm"]
    one = f"{ANSWER}\n\nSources:\n  [1] trees/oak.md:1\nnot cited: [2]\n"
    first, second = done.out[: len(one)], done.out[len(one) :]
    assert first == one
    assert second.startswith(f"{ANSWER}\n\nSources:\n  [1] trees/")


@pytest.mark.spec("A12")
def test_a_conversation_without_questions_asks_for_nothing(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = piped(shell, monkeypatch, "\n  \n", "ask", "--chat")
    assert (done.code, done.out, done.err, model.requests) == (0, "", "", [])


@pytest.mark.spec("A12", "R27")
def test_a_history_is_read_before_the_first_question(shell: Shell, model: ChatServer) -> None:
    before: list[dict[str, object]] = [
        {"role": "system", "content": "Be kind.", "seen": 1},
        {"role": "user", "content": "which trees are poisonous"},
        {"role": "assistant", "content": "A yew", "incomplete": True},
    ]
    Path("talk.jsonl").write_text("\ufeff" + "\n\n".join(map(json.dumps, before)) + "\r\n", "utf-8")
    model.script(whole("how old grows a yew"), spoken(ANSWER))
    value = shell("ask", "how old do they get", "--history", "talk.jsonl", "--json").json()
    assert value["search"] == "how old grows a yew"
    assert value["sources"][0]["document_id"] == "yew.md"
    sent = [(one["role"], one["content"]) for one in model.messages]
    assert [sent[0], *sent[2:-1]] == [(one["role"], one["content"]) for one in before]
    kept = Path("talk.jsonl").read_text("utf-8-sig").split("\n")
    assert kept[:2] == [json.dumps(before[0]), ""]  # what was there stays as it was
    assert [json.loads(line) for line in kept if line.strip()] == [
        *before, {"role": "user", "content": "how old do they get"}, {"role": "assistant", "content": ANSWER},
    ]  # fmt: skip


@pytest.mark.spec("A12")
def test_a_conversation_goes_on_where_it_was_left(shell: Shell, model: ChatServer) -> None:
    rules = {"role": "system", "content": "Be kind."}
    Path("talk.jsonl").write_text(json.dumps(rules), "utf-8")
    for _ in range(2):
        assert shell("ask", QUESTION, "--history", "talk.jsonl", "--no-rewrite").code == 0
    kept = [json.loads(line) for line in Path("talk.jsonl").read_text("utf-8").splitlines()]
    turn = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
    assert kept == [rules, *turn, *turn]
    leading, system, *turns, _ = model.messages  # leading system messages, the system prompt, the other turns (A3)
    assert (leading, system["role"], turns) == (rules, "system", turn)
    assert os.stat("talk.jsonl").st_size


@pytest.mark.spec("A12")
def test_what_was_no_answer_is_no_turn(shell: Shell, model: ChatServer) -> None:
    assert shell("ask", "what does a suspension bridge cost", "--history", "talk.jsonl").code == 1
    assert Path("talk.jsonl").read_text("utf-8") == ""
    assert os.stat("talk.jsonl").st_mode & 0o777 == 0o600


@pytest.mark.spec("R27", "A12")
def test_a_question_that_follows_on_another_is_searched_for_as_one_that_stands_alone(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(spoken(ANSWER), whole('1. "how old grows a yew?"'), spoken("Two thousand years [Source 1]."))
    asked = ["ask", "--chat", "--json", "--prompt-log", "log.jsonl"]
    done = piped(shell, monkeypatch, f"{QUESTION}\nand the poisonous one?\n", *asked)
    _, second = (json.loads(line) for line in done.out.splitlines())
    assert (second["question"], second["search"]) == ("and the poisonous one?", "how old grows a yew?")
    assert second["sources"][0]["document_id"] == "yew.md"
    assert "rewrite_ms" in second["timings"]
    assert model.messages[-1]["content"].endswith("Question: and the poisonous one?")
    logged = [json.loads(line)["messages"] for line in Path("log.jsonl").read_text("utf-8").splitlines()]
    assert logged == [request.body["messages"] for request in model.requests]  # the request to rewrite is one too
    talk = model.requests[1].body["messages"][-1]["content"]
    assert f"user: {QUESTION}\nassistant: {ANSWER}" in talk


@pytest.mark.spec("R27")
def test_a_rewrite_that_fails_is_a_warning_and_the_question_as_it_is(
    shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.script(spoken(ANSWER), failed(500, "busy"), spoken(ANSWER))
    done = piped(shell, monkeypatch, f"{QUESTION}\nhow tall grows an elm\n", "ask", "--chat", "--json")
    _, second = (json.loads(line) for line in done.out.splitlines())
    assert second["search"] == "how tall grows an elm"
    assert "searched for the question as it stands, it was not rewritten: " in second["warnings"][0]
    assert done.code == 0


def test_a_line_that_is_no_utf_8_is_told(shell: Shell, model: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    done = piped(shell, monkeypatch, b"caf\xe9\n", "ask", "--chat")
    assert (done.code, model.requests) == (2, [])
    assert "not valid UTF-8" in done.err


def test_extracts_say_that_they_don_t_look_back(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    done = piped(shell, monkeypatch, f"{QUESTION}\nhow tall grows an elm\n", "ask", "--chat")
    assert done.err.count("note: the turns before were not looked at") == 1


def test_a_history_is_a_regular_file(shell: Shell, model: ChatServer) -> None:
    done = shell("ask", QUESTION, "--history", "/dev/zero")
    assert (done.code, model.requests) == (2, [])
    assert "--history /dev/zero is no regular file" in done.err


def test_where_the_room_ends_a_file_stays_as_it_was(shell: Shell, tmp_path: Path) -> None:
    """A file may have no more than 200 bytes here: what is written of a line is taken back."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "from pathlib import Path; from ragcli.cli.messages import append_turn\n"
        "append_turn(Path('talk.jsonl'), 'x' * 100, 'y' * 100, is_whole=True)"
    )
    Path("talk.jsonl").write_text('{"role": "user", "content": "x"}\n', "utf-8")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert Path("talk.jsonl").read_text("utf-8") == '{"role": "user", "content": "x"}\n'
    assert "UsageError: talk.jsonl: File too large" in done.stderr


@pytest.mark.parametrize("name", ["talk.jsonl", ".ragcli/index.db"])
def test_a_log_has_a_file_of_its_own(name: str, shell: Shell, model: ChatServer) -> None:
    done = shell("ask", QUESTION, "--history", "talk.jsonl", "--prompt-log", name)
    assert (done.code, model.requests) == (2, [])
    assert f"--prompt-log {name}: this file is something else already" in done.err
