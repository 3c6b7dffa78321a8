"""F16: pieces of a stream split a character or an event; streams end in many ways. The text is exact, or marked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.services import KEY
from tests.streams import CUT, DONE, Script, delta, event, finish, usage

GREETING = "你好🌍 [Source 1]"
LINE = b'data: {"choices":[{"delta":{"content":"' + GREETING.encode() + b'"}}]}'
HALVES = tuple(b'data: {"choices":[{"delta":{"content":"' + half + b'"}}]}\n\n' for half in (b"\\ud83c", b"\\udf0d"))
STREAMS = {
    "a byte at a time": Script((LINE + b"\n\n", DONE), bytewise=True),
    "CRLF": Script((LINE + b"\r\n\r\n", event("[DONE]", end="\r\n"))),
    "comments": Script((b": ping\n\n", LINE + b"\n\n", b": ping\n\n", DONE)),
    "without a space": Script((LINE.replace(b"data: ", b"data:") + b"\n\n", event("[DONE]", space=""))),
    "several lines": Script(
        (LINE.replace(b',"delta"', b',\ndata: "delta"').replace(b"[{", b"[\ndata: {") + b"\n\n", DONE)
    ),
    "usage without choices": Script((LINE + b"\n\n", event(finish()), event(usage(200, 4)), DONE)),
    "without [DONE]": Script((LINE + b"\n\n", event(finish()))),
    "an emoji in two events": Script((event(delta("你好")), *HALVES, event(delta(" [Source 1]")), DONE)),
    "all of it, a byte at a time": Script(
        (
            b"\xef\xbb\xbf: ping\r\n\r\n",
            event(delta(role="assistant"), end="\r\n"),
            b"id: 7\nretry: 5\n",
            event(delta("你"), space=""),
            b": ping\n\n",
            event({**delta("好"), "usage": None}, end="\r"),
            *HALVES,
            b"event: message\r\ndata:"
            + json.dumps(delta(" [Source"), indent=1).replace("\n", "\ndata: ").encode()
            + b"\n\n",
            event(delta(" 1]")),
            event(finish()),
            event(usage(200, 4)),
        ),
        bytewise=True,
    ),
}


@pytest.mark.spec("A7")
@pytest.mark.parametrize("name", STREAMS)
def test_the_text_is_exact(name: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees(shell, tmp_path)
    with answering(monkeypatch, STREAMS[name]):
        done = shell("ask", QUESTION, "--json")
        shown = shell("ask", QUESTION, "--stream")
    assert (done.code, done.json()["answer"], done.json()["outcome"]) == (0, GREETING, "answered")
    assert shown.out.startswith(f"{GREETING}\n\nSources:\n  [1] trees/oak.md:1")


BROKEN = {
    "cut": (Script((event(delta("Thirty me")), CUT)), "no answer"),
    "an error object": (
        Script((event(delta("Thirty me")), event({"error": {"message": f"out of memory {KEY}"}}))),
        "out of memory (hidden)",
    ),
    "an end without a word": (Script((event(delta("Thirty me")),)), "the stream ended before the answer did"),
}  # fmt: skip


@pytest.mark.spec("A7", "C9")
@pytest.mark.parametrize("name", BROKEN)
def test_what_came_is_kept_and_marked(name: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees(shell, tmp_path)
    script, said = BROKEN[name]
    with answering(monkeypatch, script):
        done = shell("ask", QUESTION, "--json", "--history", "talk.jsonl")
        shown = shell("ask", QUESTION, "--stream")
    value = done.json()
    assert (done.code, value["answer"], value["outcome"]) == (5, "Thirty me", "incomplete")
    assert said in value["problem"]
    assert (shown.code, shown.out.splitlines()[0]) == (5, "Thirty me")
    assert "warning: the answer is incomplete: openai:toy" in shown.err
    assert KEY not in done.out + done.err + shown.err
    turns = [json.loads(line) for line in Path("talk.jsonl").read_text("utf-8").splitlines()]
    assert turns[-1] == {"role": "assistant", "content": "Thirty me", "incomplete": True}
