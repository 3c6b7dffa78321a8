"""`ragcli ask`: what it prints, where, and how it ends. Each case stands for a promise of spec A or C."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragcli.asking import Hearing
from ragcli.options import ChatSettings
from ragcli.pipeline import Pipeline
from ragcli.types import Message
from tests import indexes
from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.llama import Llama
from tests.services import EmbeddingService, embeddings, error
from tests.streams import CUT, ChatServer, Script, delta, event, failed, spoken

ANSWER = "Thirty metres [Source 1]."
SCHEMA, OF_QUERY = (
    json.loads((Path(__file__).parent / f"{name}.schema.json").read_text("utf-8")) for name in ("ask", "query")
)
HIT = {"$ref": "#/$defs/hit", "$defs": OF_QUERY["$defs"]}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """In a folder with an index of three texts about trees."""
    monkeypatch.chdir(tmp_path)
    shell = Shell(capsys)
    trees(shell, tmp_path)
    return shell


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A service that the commands of this test ask."""
    with answering(monkeypatch, spoken(ANSWER, tokens=(190, 6))) as server:
        yield server


def valid(value: Any) -> Any:
    """The value, which is what the contract says."""
    jsonschema.validate(value, SCHEMA)
    for number, source in enumerate(value["sources"], 1):
        assert source["number"] == number
        jsonschema.validate({name: member for name, member in source.items() if name != "number"}, HIT)
    return value


# ------------------------------------------------------------------------------------------------------------ extracts


@pytest.mark.spec("A1", "A9")
def test_without_a_model_the_answer_is_made_of_cited_extracts(shell: Shell) -> None:
    done = shell("ask", QUESTION)
    assert done.code == 0
    head, *lines = done.out.splitlines()
    assert head == "Extracts from the sources, word for word:"
    assert lines[1] == "“An oak grows thirty metres tall.” [Source 1]"
    assert "  [1] trees/oak.md:1" in lines
    assert done.err.startswith("extractive, 2 sources, ")


@pytest.mark.spec("A1", "C11")
def test_extracts_as_json(shell: Shell) -> None:
    value = valid(shell("ask", QUESTION, "--json", "--verify").json())
    assert (value["engine"], value["outcome"]) == ("extractive", "answered")
    assert value["usage"] == {"prompt_tokens": None, "completion_tokens": None}
    assert all(one["valid"] and one["supported"] for one in value["citations"])
    sources = {source["number"]: source["text"] for source in value["sources"]}
    for line in value["answer"].splitlines():
        sentence, _, marker = line.removeprefix("“").partition("” [Source ")
        assert sentence in sources[int(marker[0])].replace("\n", " ")


@pytest.mark.spec("A1", "A14")
def test_extracts_by_words_and_meaning(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingService() as service:
        monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:toy")
        for name, value in service.environ.items():
            monkeypatch.setenv(name, value)
        assert shell("ingest", "trees", "--re-embed").code == 0
        before = len(service.texts)
        value = valid(shell("ask", QUESTION, "--json").json())
        assert (value["retrieval"]["mode"], value["warnings"]) == ("hybrid", [])
        assert value["answer"].startswith("“An oak grows thirty metres tall.” [Source 1]\n")
        assert all("dense" in source["arms"] for source in value["sources"])
        asked = service.texts[before:]
        assert QUESTION in asked
        assert "Its acorns feed jays." in asked  # sentences are compared, one by one
        monkeypatch.setenv("RAGCLI_EMBEDDING__RETRIES", "0")
        service.rule = lambda request: embeddings(request) if request.texts == [QUESTION] else error(500, "busy")
        done = shell("ask", QUESTION)
        assert (done.code, done.out.splitlines()[2]) == (0, "“An oak grows thirty metres tall.” [Source 1]")
        assert "warning: the extracts were chosen by words alone: " in done.err


# ----------------------------------------------------------------------------------------------------------- a service


@pytest.mark.spec("A1", "A9")
def test_a_model_answers_and_its_sources_are_listed(shell: Shell, model: ChatServer) -> None:
    done = shell("ask", QUESTION)
    assert done.code == 0
    assert done.out == f"{ANSWER}\n\nSources:\n  [1] trees/oak.md:1\nnot cited: [2]\n"
    assert "openai:toy, 2 sources, " in done.err
    assert "190 tokens read, 6 written" in done.err


@pytest.mark.spec("C11")
def test_the_answer_as_json(shell: Shell, model: ChatServer) -> None:
    value = valid(shell("ask", QUESTION, "--format", "json").json())
    assert (value["answer"], value["question"], value["search"]) == (ANSWER, QUESTION, QUESTION)
    assert value["citations"] == [{"marker": "[Source 1]", "source": 1, "start": 14, "end": 24, "valid": True}]
    assert (value["usage"]["prompt_tokens"], value["usage"]["completion_tokens"]) == (190, 6)
    assert {"retrieval_ms", "first_token_ms", "answer_ms", "total_ms"} <= set(value["timings"])
    assert [(one["number"], one["document_id"]) for one in value["sources"]] == [(1, "oak.md"), (2, "elm.md")]
    assert value["retrieval"]["mode"] == "keyword"


@pytest.mark.spec("A14")
def test_its_options_reach_the_model(shell: Shell, model: ChatServer) -> None:
    Path("own.txt").write_text("Answer in rhyme.", "utf-8")
    options = ["--temperature", "0.5", "--max-tokens", "77", "--seed", "3", "--model", "other"]
    assert shell("ask", QUESTION, *options, "--system", "Be kind.").code == 0
    body = model.requests[-1].body
    assert {name: body[name] for name in ("temperature", "max_tokens", "seed", "model")} == {
        "temperature": 0.5, "max_tokens": 77, "seed": 3, "model": "other",
    }  # fmt: skip
    assert model.messages[0] == {"role": "system", "content": "Be kind."}
    assert "[Source 1] oak.md, line 1" in model.messages[1]["content"]  # labels stay (spec A4)
    assert shell("ask", QUESTION, "--system", "@own.txt").code == 0
    assert model.messages[0]["content"] == "Answer in rhyme."


@pytest.mark.spec("A5")
def test_sources_as_the_result_of_a_tool(shell: Shell, model: ChatServer) -> None:
    shell("ask", QUESTION, "--sources-as-tool")
    system, user, assistant, tool = model.messages
    assert (system["role"], user) == ("system", {"role": "user", "content": QUESTION})
    (call,) = assistant["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"query": QUESTION}
    assert tool["role"] == "tool"
    assert tool["tool_call_id"] == call["id"]
    assert tool["content"].startswith("[Source 1] oak.md, line 1\n\n")


@pytest.mark.spec("A9")
def test_sources_in_the_order_of_their_citation(shell: Shell, model: ChatServer) -> None:
    model.script(spoken("Beetles [Source 2], and thirty metres [Source 1], [Source 9]."))
    value = valid(shell("ask", QUESTION, "--renumber", "--json").json())
    assert value["answer"] == "Beetles [Source 1], and thirty metres [Source 2], [Source 9]."
    assert [(one["number"], one["document_id"]) for one in value["sources"]] == [(1, "elm.md"), (2, "oak.md")]
    assert value["renumbered"] == {"2": 1, "1": 2}
    assert [one["valid"] for one in value["citations"]] == [True, True, False]


# ------------------------------------------------------------------------------------------------ what is sent is seen


@pytest.mark.spec("A6")
def test_what_is_sent_can_be_seen_and_logged(shell: Shell, model: ChatServer) -> None:
    Path("log.jsonl").write_text('{"earlier": 1}', "utf-8")  # its last line is open
    done = shell("ask", QUESTION, "--show-prompt", "--prompt-log", "log.jsonl")
    system, user = (message["content"] for message in model.messages)
    assert f"--- system ---\n{system}\n" in done.err
    assert f"--- user ---\n{user}\n" in done.err
    earlier, line = Path("log.jsonl").read_text("utf-8").splitlines()
    assert json.loads(earlier) == {"earlier": 1}
    assert json.loads(line)["messages"] == model.messages
    shell("ask", QUESTION, "--prompt-log", "log.jsonl")
    assert len(Path("log.jsonl").read_text("utf-8").splitlines()) == 3


@pytest.mark.spec("A6")
def test_an_observer_that_fails_harms_nothing(shell: Shell, model: ChatServer, tmp_path: Path) -> None:
    seen: list[tuple[Message, ...]] = []

    def observe(messages: Any) -> None:
        assert not model.requests  # just before it is sent
        seen.append(messages)
        raise ZeroDivisionError("mine")

    settings = indexes.keywords(chat=ChatSettings(model="toy", base_url=model.url))
    with Pipeline.open(indexes.index_of(tmp_path), settings) as pipeline:
        answer = pipeline.ask(QUESTION, hearing=Hearing(observer=observe))
    assert answer.text == ANSWER
    assert "the observer of the prompt failed: ZeroDivisionError: mine" in answer.warnings
    assert [{"role": one.role, "content": one.content} for one in seen[0]] == model.messages


@pytest.mark.spec("A8", "C9")
def test_a_service_that_fails_is_one_line(shell: Shell, model: ChatServer) -> None:
    model.script(failed(500, "boom"))
    done = shell("ask", QUESTION)
    assert (done.code, done.out) == (5, "")
    error = next(line for line in done.err.splitlines() if line.startswith("error: "))
    assert model.address in error
    assert "500 Internal Server Error: " in error


@pytest.mark.spec("A8", "C9")
def test_a_service_that_is_not_there_is_one_line(shell: Shell, model: ChatServer) -> None:
    done = shell("ask", QUESTION, "--base-url", "http://127.0.0.1:1/v1", "--history", "talk.jsonl")
    assert (done.code, done.out, Path("talk.jsonl").read_text("utf-8")) == (5, "", "")
    error, hint = done.err.splitlines()
    assert error.startswith("error: openai:toy: POST http://127.0.0.1:1/v1/chat/completions: no answer: ")
    assert hint.startswith("hint: check chat.base_url")


@pytest.mark.spec("C11")
def test_what_went_wrong_as_json(shell: Shell, model: ChatServer) -> None:
    model.script(Script((event(delta(reasoning_content="Oaks ")), event(delta("Thirty")), CUT)))
    done = shell("ask", QUESTION, "--json", "--verify")
    value = valid(done.json())
    assert (done.code, value["outcome"], value["answer"], value["reasoning"]) == (5, "incomplete", "Thirty", "Oaks")
    assert value["warnings"][0] == f"the answer is incomplete: {value['problem']}"
    assert value["citations"] == []


# ----------------------------------------------------------------------------------------------------------- citations


@pytest.mark.spec("A9")
def test_each_statement_is_judged_and_what_is_not_supported_is_told(shell: Shell, model: ChatServer) -> None:
    model.script(
        spoken("An oak grows thirty metres tall [Source 1]. Granite holds much quartz and feldspar [Source 1].")
    )
    done = shell("ask", QUESTION, "--verify")
    assert done.code == 0
    assert "warning: not supported: “Granite holds much quartz and feldspar.”: " in done.err
    assert done.err.splitlines()[-1].endswith("; 1 of 2 statements supported")
    value = valid(shell("ask", QUESTION, "--verify", "--json").json())
    assert [one["supported"] for one in value["statements"]] == [True, False]
    assert [one["supported"] for one in value["citations"]] == [True, False]


@pytest.mark.spec("A9", "C9")
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Thirty metres.", "the answer cites no source"),
        ("Thirty metres [Source 1][Source 7].", "the answer cites what was not sent"),
        ("Granite holds much quartz [Source 1].", "1 of 1 statements are not supported"),
        ("An oak grows thirty metres tall [Source 1].", ""),
    ],
)
def test_a_script_can_insist_on_citations(text: str, fault: str, shell: Shell, model: ChatServer) -> None:
    model.script(spoken(text))
    assert shell("ask", QUESTION, "--verify").code == 0
    done = shell("ask", QUESTION, "--verify", "--strict-citations")
    assert done.out.startswith(f"{text}\n")  # it is shown all the same
    assert done.code == (1 if fault else 0)
    assert [line for line in done.err.splitlines() if line.startswith("error: ")] == (
        [f"error: --strict-citations: {fault}"] if fault else []
    )


# ----------------------------------------------------------------------------------------------------------- no answer


@pytest.mark.spec("A10", "C9")
def test_nothing_relevant_is_no_answer_and_no_model_is_asked(shell: Shell, model: ChatServer) -> None:
    done = shell("ask", "what does a suspension bridge cost")
    assert done.code == 1
    assert done.out.startswith("No confident answer: ")
    assert model.requests == []
    value = valid(shell("ask", "what does a suspension bridge cost", "--json").json())
    assert (value["outcome"], value["engine"]) == ("no-answer", "openai:toy")
    assert shell("ask", "what does a suspension bridge cost", "--always").code == 0


@pytest.mark.spec("C9", "C7")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["ask"], 2, "no query"),
        (["ask", " "], 2, "the query is empty"),
        (["ask", "x", "--index", "none"], 3, ""),
        (["ask", "x", "--engine", "openai"], 2, "no language model is named"),
        (["ask", "x", "--seed", "-1"], 2, "answer.seed = -1 is out of range"),
        (["ask", "x", "--seed", "x"], 2, "invalid value for '--seed'"),
        (["ask", "x", "--max-tokens", "0"], 2, "answer.max_tokens = 0 is out of range"),
        (["ask", "x", "--temperature", "3"], 2, "chat.temperature = 3.0 is out of range"),
        (["ask", "x", "--system", ""], 2, "answer.system = '' is out of range"),
        (["ask", "x", "--format", "csv"], 2, "invalid value for '--format'"),
        (["ask", "--chat", "-"], 2, "- and --chat: both read standard input"),
        (["ask", "--chat", "--history", "bad.jsonl"], 2, "bad.jsonl:2: no JSON: half"),
        (["ask", "x", "--system", "@none.txt"], 2, "--system @none.txt: No such file"),
        (["ask", "x", "--model", "none.gguf"], 2, "chat.model = none.gguf: No such file"),
        (["ask", "x", "--history", "bad.jsonl"], 2, "bad.jsonl:2: no JSON: half"),
        (["ask", "x", "--history", "role.jsonl"], 2, "role.jsonl:1: no message"),
        (["ask", "x", "--history", "none/h.jsonl"], 2, "none/h.jsonl: No such file"),
        (["ask", "x", "--prompt-log", "none/l.jsonl"], 2, "none/l.jsonl: No such file"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], code: int, said: str, shell: Shell) -> None:
    Path("bad.jsonl").write_text('{"role": "user", "content": "x"}\nhalf\n', "utf-8")
    Path("role.jsonl").write_text('{"role": "robot", "content": "x"}\n', "utf-8")
    done = shell(*arguments)
    assert (done.code, done.out) == (code, "")
    first = next(line for line in done.err.splitlines() if line.startswith("error: "))
    assert said in first


def test_an_answer_without_end_is_not_checked_and_that_is_said(shell: Shell, model: ChatServer) -> None:
    model.script(spoken("[1]" * 40_000))
    value = valid(shell("ask", QUESTION, "--json", "--verify").json())
    assert value["warnings"] == ["an answer of 120,000 characters: its citations were not checked"]
    assert (value["citations"], len(value["answer"])) == ([], 120_000)


@pytest.mark.spec("C13")
def test_what_a_terminal_would_obey_is_shown(shell: Shell, model: ChatServer) -> None:
    text = "Red \x1b[31mtext\x1b[0m, [bold]b[/bold] \u202e [Source 1]."
    model.script(spoken(text))
    shown = shell("ask", QUESTION).out
    assert "\x1b" not in shown
    assert "Red \\x1b[31mtext\\x1b[0m, [bold]b[/bold] <U+202E> [Source 1]." in shown
    assert shell("ask", QUESTION, "--stream").out.startswith(shown.splitlines()[0])
    assert shell("ask", QUESTION, "--json").json()["answer"] == text


@pytest.mark.spec("C13")
def test_nor_does_a_terminal_obey_a_source(shell: Shell) -> None:
    text = "A larch [bold]grows[/bold] \x1b[31mforty\x1b[0m metres \u202etall."
    indexes.write(Path("trees"), {"larch [red]\x1b[1m.md": f"# Larch [b] \x1b[2J\n\n{text}\n"})
    assert shell("ingest", "trees").code == 0
    shown = shell("ask", "how tall grows a larch").out
    assert "“A larch [bold]grows[/bold] \\x1b[31mforty\\x1b[0m metres <U+202E>tall.” [Source 1]\n" in shown
    assert "\n  [1] trees/larch [red]\\x1b[1m.md:1-3  Larch [b] \\x1b[2J\n" in shown
    assert not re.search("[\x1b\u202e]", shown)
    value = valid(shell("ask", "how tall grows a larch", "--json").json())
    assert value["answer"].splitlines()[0] == f"“{text}” [Source 1]"
    assert text in value["sources"][0]["text"]


# ------------------------------------------------------------------------------------------------------- real models


@pytest.mark.spec("A1", "M9")
def test_a_real_server_answers(shell: Shell, llama: Llama, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    asked = ["ask", QUESTION, "--model", llama.model, "--base-url", llama.url, "--max-tokens", "16", "--json"]
    for more in ([], ["--no-stream"]):
        done = shell(*asked, *more)
        value = valid(done.json())
        assert (done.code, value["engine"]) == (0, f"openai:{llama.model}")
        assert value["answer"]
        assert value["usage"]["prompt_tokens"] > 150
        assert value["usage"]["completion_tokens"] <= 16
    asked.remove("--json")
    for more in ([], ["--stream"]):
        done = shell(*asked, *more)
        answer, _, rest = done.out.partition("\n\nSources")
        assert done.code == 0
        assert answer.strip()
        assert "  [1] trees/oak.md:1\n" in rest
        assert re.search(rf"^openai:{llama.model}, 2 sources, .* tokens read, \d+ written$", done.err, re.MULTILINE)


@pytest.mark.spec("A1", "M9")
def test_a_model_in_this_process_answers(shell: Shell, pulled: Any) -> None:
    file = next(pulled("smollm2-135m").glob("*.gguf"))
    value = valid(shell("ask", QUESTION, "--model", str(file), "--max-tokens", "8", "--json").json())
    assert value["engine"] == f"gguf:{file.name}"
    assert value["answer"]
    sent, read = value["usage"]["sent_tokens"], value["usage"]["prompt_tokens"]
    assert abs(sent - read) <= 16  # counted with its own tokenizer; what its template adds is estimated
    assert value["usage"]["completion_tokens"] <= 8


def test_time_is_told_in_its_order(shell: Shell, model: ChatServer) -> None:
    started_at = time.perf_counter()
    timings = shell("ask", QUESTION, "--json").json()["timings"]
    elapsed = (time.perf_counter() - started_at) * 1000
    assert 0 <= timings["first_token_ms"] <= timings["answer_ms"] <= timings["total_ms"] <= elapsed
