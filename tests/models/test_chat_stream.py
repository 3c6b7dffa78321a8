"""Replies that come as a stream of events: read to the letter, whatever the pieces; kept where they break off (A7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import RagcliError, RemoteError
from ragcli.models import http
from ragcli.models.chat import ServiceChat
from ragcli.models.chat_reply import Writing, as_sent
from ragcli.options import ChatSettings
from ragcli.types import ChatReply, Message, ToolCall, Usage, Wish
from tests.models.clock import Time
from tests.services import KEY
from tests.streams import (
    CUT,
    DONE,
    HANG_UP,
    PAUSE,
    ChatServer,
    Script,
    delta,
    event,
    failed,
    finish,
    spoken,
    usage,
    whole,
)

ASKED = [Message("system", "Be brief."), Message("user", "Greet me.")]
GREETING = "你好🌍"
WHOLE = Wish()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(spoken(GREETING)) as running:
        yield running


Make = Callable[..., ServiceChat]


@pytest.fixture
def make(server: ChatServer) -> Iterator[Make]:
    made: list[ServiceChat] = []

    def call(*, time: Time | None = None, **more: Any) -> ServiceChat:
        chosen = ChatSettings(**({"timeout_seconds": 5.0, "retries": 1} | more))
        made.append(ServiceChat("toy", server.url, KEY, chosen, clock=(time or Time()).clock))
        return made[-1]

    yield call
    for chat in made:
        chat.close()


def written(chat: ServiceChat, wish: Wish = WHOLE) -> ChatReply:
    """The reply; its pieces are its text."""
    pieces: list[str] = []
    reply = chat.write(ASKED, wish, pieces.append)
    assert "".join(pieces) == reply.text
    assert all(pieces)
    return reply


def test_a_stream_is_asked_for_with_its_usage(server: ChatServer, make: Make) -> None:
    server.script(spoken("Good ", "day", tokens=(12, 3)))
    reply = written(make(), Wish(max_tokens=9, seed=7))
    assert reply == ChatReply(text="Good day", finish="stop", usage=Usage(12, 3))
    assert server.requests[0].body == {
        "model": "toy", "temperature": 0.0, "max_tokens": 9, "seed": 7, "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Greet me."}],
    }  # fmt: skip
    assert "text/event-stream" in server.requests[0].headers["accept"]


ODD: dict[str, Script] = {
    "a byte at a time": spoken("你好", "🌍", bytewise=True),
    "CRLF": Script((event(delta(GREETING), end="\r\n"), event("[DONE]", end="\r\n"))),
    "CR": Script((event(delta(GREETING), end="\r"), event("[DONE]", end="\r"))),
    "comments": Script((b": ping\n\n", event(delta("你好")), b": ping\n", event(delta("🌍")), DONE)),
    "no space": Script((event(delta(GREETING), space=""), event("[DONE]", space=""))),
    "several lines": Script(
        (b'data: {"choices": [{"delta":\ndata: {"content": "', GREETING.encode(), b'"}}]}\n\n', DONE)
    ),
    "no blank lines": Script((*(event(delta(text))[:-1] for text in GREETING), DONE)),
    "no blank line at all": Script((*(event(delta(text))[:-1] for text in GREETING), DONE[:-1])),
    "no line end last": Script((event(delta(GREETING)), DONE.rstrip())),
    "a BOM": Script((b"\xef\xbb\xbf", event(delta(GREETING)), DONE)),
    "a character in two escapes": Script((
        event(json.dumps(delta("你好\ud83c"))), event(json.dumps(delta("\udf0d"))), DONE,
    )),
    "other fields": Script((b"id: 1\nretry: 10\n" + event(delta(GREETING), kind="message"), DONE)),
    "a role first, nulls last": Script(
        (event(delta(role="assistant")), event(delta(GREETING)), event(delta(content=None)), DONE)
    ),
    "no [DONE]": Script((event(delta(GREETING)), event(finish()))),
    "no finish_reason": Script((event(delta(GREETING)), DONE)),
    "reset after its end": Script((event(delta(GREETING)), event(finish()), CUT)),
    "hung up after its end": Script((event(delta(GREETING)), event(finish()), HANG_UP)),
    "usage last": Script((event(delta(GREETING)), event(finish()), event(usage(5, 3)), DONE)),
    "plain text": spoken(GREETING, content_type="text/plain"),
    "another charset": spoken(GREETING, content_type="text/event-stream; charset=iso-8859-1"),
    "no content type": spoken(GREETING, content_type=""),
    "parts": Script((event(delta(content=[{"type": "text", "text": GREETING}])), DONE)),
    "JSON in place of a stream": whole(GREETING),
    "JSON called text": Script(whole(GREETING).pieces, content_type="text/plain"),
    "JSON of no type": Script(whole(GREETING).pieces, content_type=""),
}  # fmt: skip


@pytest.mark.spec("A7", "M9")
@pytest.mark.parametrize("name", ODD)
def test_the_text_is_exact(name: str, server: ChatServer, make: Make) -> None:
    server.script(ODD[name])
    reply = written(make())
    assert (reply.text, reply.problem, reply.reasoning) == (GREETING, "", "")
    assert len(server.requests) == 1


@pytest.mark.spec("A7")
@settings(deadline=None, max_examples=300)
@given(
    data=st.data(),
    texts=st.lists(st.text(min_size=1), min_size=1, max_size=5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    space=st.sampled_from(["", " "]),
)
def test_however_it_is_cut_into_pieces_it_is_the_same(
    data: st.DataObject, texts: list[str], end: str, space: str
) -> None:
    """The decoder alone, as httpx2 has it, with what reads its events: no server for hundreds of streams."""
    import httpx2

    values = [*(delta(text) for text in texts), finish(), "[DONE]"]
    stream = b"".join(event(value, end=end, space=space) for value in values)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    request = httpx2.Request("POST", "http://127.0.0.1")
    response = httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, content=iter(pieces), request=request
    )
    said: list[str] = []
    writing = Writing(said.append)
    for one in httpx2.EventSource(response):
        if writing.event(one.event, one.data):
            break
    writing.end()
    expected = "".join(texts)
    if not expected.lstrip().startswith("<think>"):
        assert "".join(said) == writing.text == expected


# ------------------------------------------------------------------------------------------------------- it breaks off


BROKEN: dict[str, tuple[Script, str]] = {
    "cut": (Script((event(delta("Half a")), CUT)), "no answer"),
    "hung up": (Script((event(delta("Half a")), HANG_UP)), "no answer"),
    "hung up in an event": (Script((event(delta("Half a")), event(delta(" word"))[:30], HANG_UP)), "no answer"),
    "ended without a word": (Script((event(delta("Half a")),)), "the stream ended before the answer did"),
    "an error object": (
        Script((event(delta("Half a")), event({"error": {"message": f"overloaded, key {KEY}"}}), DONE)),
        "the service broke off: overloaded, key (hidden)",
    ),
    "an error event": (
        Script((event(delta("Half a")), event({"message": "overloaded"}, kind="error"))),
        "the service broke off: overloaded",
    ),
    "an object of errors": (  # and [DONE] after it, as if nothing were lacking
        Script((event(delta("Half a")), event({"object": "error", "message": "out of memory"}), DONE)),
        "the service broke off: out of memory",
    ),
    "an error as text": (
        Script((event(delta("Half a")), event("overloaded", kind="error"))), "the service broke off: what is no JSON",
    ),
    "no JSON": (Script((event(delta("Half a")), event("{half"))), "the service broke off: what is no JSON: {half"),
}  # fmt: skip


@pytest.mark.spec("A7", "A8")
@pytest.mark.parametrize("name", BROKEN)
def test_what_came_is_kept_and_told_to_be_a_part(name: str, server: ChatServer, make: Make) -> None:
    script, said = BROKEN[name]
    server.script(script)
    reply = written(make())
    assert reply.text == "Half a"
    assert said in reply.problem
    assert reply.problem.startswith("openai:toy: ")
    assert KEY not in reply.problem
    assert len(server.requests) == 1  # what was shown is not written a second time


@pytest.mark.spec("A8")
def test_what_broke_before_a_word_was_there_is_an_error(server: ChatServer, make: Make) -> None:
    server.script(Script((event(delta(role="assistant")), CUT)))
    with pytest.raises(RemoteError, match="openai:toy: no answer"):
        written(make())
    for named in ("text/event-stream", "text/plain", ""):
        for data in (event({"error": f"no model for {KEY}"}), b'{"error": "no model for %s"}' % KEY.encode()):
            server.script(Script((data,), content_type=named))
            with pytest.raises(RemoteError) as caught:
                written(make())
            assert caught.value.message == "openai:toy: an error in place of a reply: no model for (hidden)"


@pytest.mark.spec("A8")
def test_it_is_asked_again_until_the_first_event_came(server: ChatServer, make: Make) -> None:
    server.script(Script((CUT,)), spoken(GREETING))
    assert written(make()).text == GREETING
    for end in (CUT, HANG_UP):
        server.script(Script((b": ping\n\n", end)))
        with pytest.raises(RemoteError, match=r"tried 2 times") as caught:
            written(make())
        assert server.address in caught.value.message


@pytest.mark.spec("A8")
def test_retry_after_is_kept_to(server: ChatServer, make: Make) -> None:
    server.script(failed(429, "slow down", Retry_After="7"), spoken(GREETING))
    time = Time()
    assert written(make(time=time)).text == GREETING
    assert time.slept[-1] == 7.0


@pytest.mark.spec("A8")
def test_a_service_that_fails_is_told_with_host_and_status_and_without_the_key(server: ChatServer, make: Make) -> None:
    server.script(failed(500, f"boom {KEY}"))
    with pytest.raises(RemoteError) as caught:
        written(make(retries=2))
    assert len(server.requests) == 3
    assert server.address in caught.value.message
    assert "500 Internal Server Error" in caught.value.message
    assert KEY not in caught.value.message + caught.value.hint


def test_a_server_that_only_pings_is_not_waited_for(server: ChatServer, make: Make) -> None:
    server.script(Script(tuple([b": ping\n\n"] * 2_000_000), bytewise=False))
    with pytest.raises(RemoteError, match="no whole answer within"):
        written(make(timeout_seconds=0.05, retries=0))


def test_pings_do_not_keep_a_reply_alive_that_has_begun(server: ChatServer, make: Make) -> None:
    server.script(Script((event(delta("Half a")), *[b": ping\n\n"] * 2_000_000)))
    reply = written(make(timeout_seconds=0.05, retries=0))
    assert reply.text == "Half a"
    assert "no whole answer within" in reply.problem
    assert len(server.requests) == 1


def test_a_reply_that_stops_coming_is_kept_and_told(server: ChatServer, make: Make) -> None:
    server.script(Script((event(delta("Half a")), PAUSE)))
    reply = written(make(timeout_seconds=0.2))
    assert (reply.text, reply.problem) == ("Half a", "openai:toy: no answer within 0.2 s")
    assert len(server.requests) == 1


def test_a_stream_without_end_is_read_up_to_the_largest_answer(
    server: ChatServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = event(delta("x" * 100))
    monkeypatch.setattr(http, "LARGEST", 10 * len(one))
    server.script(Script((one,) * 10_000))
    reply = written(make())
    assert reply.text.strip("x") == ""
    assert 0 < len(reply.text) <= 1000
    assert "the answer is larger than" in reply.problem
    server.script(Script((b": ping\n\n" * 1000,) * 100))
    with pytest.raises(RemoteError, match="the answer is larger than"):
        written(make())
    assert len(server.requests) == 2  # neither is asked for again


def test_an_empty_stream_is_an_error(server: ChatServer, make: Make) -> None:
    for named in ("text/event-stream", "text/plain", ""):
        server.script(Script((), content_type=named))
        with pytest.raises(RemoteError, match="the stream ended before the answer did"):
            written(make())
    server.script(Script((), content_type="application/json"))
    with pytest.raises(RemoteError, match="the answer is not JSON: it is empty"):
        written(make())
    server.script(Script((DONE,)))
    with pytest.raises(RagcliError, match="a reply without text"):
        written(make())


def test_a_page_in_place_of_a_stream_is_quoted(server: ChatServer, make: Make) -> None:
    server.script(Script((b"<html>Log in first</html>",), content_type="text/html"))
    with pytest.raises(RemoteError, match="the answer is not JSON: <html>Log in first</html>"):
        written(make())


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("depth", [50, 900, 992, 100_000])
def test_what_is_nested_without_end_is_an_error(server: ChatServer, make: Make, kind: str, depth: int) -> None:
    for start, end in ((b'{"error": ', b"}"), (b"[", b"]")):
        value = b'{"error": ' + start * depth + b"1" + end * depth + b"}"
        server.script(
            Script((value if kind == "application/json" else b"data: " + value + b"\n\n",), content_type=kind)
        )
        with pytest.raises(RagcliError, match="openai:toy: ") as caught:
            written(make())
        assert len(caught.value.message) < 400


@pytest.mark.parametrize("text", ["a\ud83cb", "a\udf0db"])
def test_half_a_character_is_a_replacement_character(server: ChatServer, make: Make, text: str) -> None:
    """No output takes a lone surrogate."""
    server.script(Script((event(json.dumps(delta(text, reasoning_content=text))), DONE)))
    reply = written(make())
    assert (reply.text, reply.reasoning) == ("a\ufffdb", "a\ufffdb")
    server.script(Script((event(json.dumps(delta(text[:2]))), DONE)))
    assert written(make()).text == "a\ufffd"


# ----------------------------------------------------------------------------------------------------- other dialects


def test_thoughts_are_kept_apart(server: ChatServer, make: Make) -> None:
    server.script(Script((event(delta(reasoning_content="Hm, ")), event(delta(reasoning_content="well.")),
                          event(delta("Yes.")), DONE)))  # fmt: skip
    reply = written(make())
    assert (reply.text, reply.reasoning) == ("Yes.", "Hm, well.")
    server.script(spoken("<thi", "nk>Hm, <b>", "well.</th", "ink>", "\n\nYes", ", <think>."))
    reply = written(make())
    assert (reply.text, reply.reasoning) == ("Yes, <think>.", "Hm, <b>well.")
    server.script(spoken("<", "b> is bold"))
    assert written(make()).text == "<b> is bold"


@settings(deadline=None, max_examples=300)
@given(
    data=st.data(), before=st.sampled_from(["", "\n", "  "]), thought=st.text("hm<>/think \n"), text=st.text("so<>/")
)
def test_thoughts_are_kept_apart_however_they_are_cut(
    data: st.DataObject, before: str, thought: str, text: str
) -> None:
    """`partition` says what is thought: all before the first mark; the text begins at its first visible character."""
    sent = f"{before}<think>{thought}</think>\n\n{text}"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sent)), max_size=12)))
    said: list[str] = []
    writing = Writing(said.append)
    for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        writing.chunk(delta(sent[a:b]))
    writing.end()
    thoughts, _, rest = sent.lstrip().removeprefix("<think>").partition("</think>")
    assert "".join(said) == writing.text == rest.lstrip()
    assert writing.reasoning == thoughts


def test_thoughts_alone_are_no_answer(server: ChatServer, make: Make) -> None:
    server.script(spoken("<think>Hm, hm", reason="length"))
    with pytest.raises(RagcliError, match="the model thought, and wrote no answer") as caught:
        written(make())
    assert "max_tokens" in caught.value.hint


def test_a_refusal_is_told(server: ChatServer, make: Make) -> None:
    server.script(Script((event(delta(refusal="I can't ")), event(delta(refusal="help.")), event(finish()), DONE)))
    with pytest.raises(RagcliError, match=r"the model refuses: I can't help\."):
        written(make())


def test_ollamas_words_for_tokens_are_known(server: ChatServer, make: Make) -> None:
    server.script(whole("Yes.", prompt_eval_count=16387, eval_count=2))
    assert written(make()).usage == Usage(16387, 2)
    last = {**finish(), "prompt_eval_count": 16387, "eval_count": 2}
    server.script(Script((event({**delta("Yes."), "usage": None}), event(last), DONE)))
    assert written(make()).usage == Usage(16387, 2)


def test_a_server_that_knows_no_stream_options_is_asked_without_them(server: ChatServer, make: Make) -> None:
    server.script(failed(400, "Unrecognized request argument: stream_options"), spoken(GREETING))
    chat = make()
    assert written(chat).text == GREETING
    assert written(chat).text == GREETING
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]


def test_a_temperature_that_is_not_taken_is_told(server: ChatServer, make: Make) -> None:
    server.script(failed(400, "Unsupported value: 'temperature' does not support 0.5"), spoken(GREETING))
    reply = written(make(temperature=0.5))
    assert reply.notes == ("openai:toy takes no temperature: 0.5 was not sent",)
    assert "temperature" not in server.requests[-1].body


def test_a_reason_to_end_is_no_place_for_a_key_or_a_book(server: ChatServer, make: Make) -> None:
    server.script(spoken(GREETING, reason=f"{KEY} " + "x" * 5000))
    reply = written(make())
    assert KEY not in reply.finish
    assert len(reply.finish) < 300


def test_a_prompt_that_is_too_long_has_its_hint(server: ChatServer, make: Make) -> None:
    server.script(failed(400, "This model's maximum context length is 4096 tokens"))
    with pytest.raises(RemoteError) as caught:
        written(make())
    assert "--max-context-tokens" in caught.value.hint


def test_without_a_stream_it_comes_whole(server: ChatServer, make: Make) -> None:
    server.script(whole(GREETING, usage={"prompt_tokens": 5, "completion_tokens": 4}))
    reply = written(make(), Wish(stream=False))
    assert reply == ChatReply(text=GREETING, finish="stop", usage=Usage(5, 4))
    assert "stream" not in server.requests[0].body


def test_an_interrupt_passes_through(server: ChatServer, make: Make) -> None:
    def interrupt(piece: str) -> None:
        raise KeyboardInterrupt

    chat = make()
    with pytest.raises(KeyboardInterrupt):
        chat.write(ASKED, WHOLE, interrupt)
    assert written(chat).text == GREETING


@pytest.mark.spec("A5")
def test_the_turns_of_a_tool_are_sent(server: ChatServer, make: Make) -> None:
    call = ToolCall("call_1", "search_documents", '{"query": "a\udcffb"}')
    turns = [Message("user", "x"), Message("assistant", "", tool_calls=(call,))]
    make().write([*turns, Message("tool", "text", tool_call_id="call_1")], WHOLE, lambda _: None)
    function = {"name": "search_documents", "arguments": '{"query": "a?b"}'}
    assert server.messages == [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "text", "tool_call_id": "call_1"},
    ]


@pytest.mark.spec("A5")
def test_a_tools_turns_as_they_are_sent() -> None:
    call = ToolCall("call_1", "search_documents", '{"query": "x"}')
    assert as_sent(Message("assistant", "", tool_calls=(call,))) == {
        "role": "assistant", "content": "",
        "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "search_documents", "arguments": '{"query": "x"}'}},
        ],
    }  # fmt: skip
    assert as_sent(Message("tool", "text", tool_call_id="call_1")) == {
        "role": "tool", "content": "text", "tool_call_id": "call_1",
    }  # fmt: skip
    assert json.dumps(as_sent(Message("user", "a\ud800b")), ensure_ascii=False).encode()  # no lone surrogate is left
