"""Chat completions of an OpenAI-compatible service: what is sent, what is read, and what is said when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragcli.errors import RagcliError, RemoteError, UsageError
from ragcli.models.chat import ServiceChat, open_chat
from ragcli.models.place import ModelPlace
from ragcli.options import ChatSettings, Settings
from ragcli.types import Message, ignore_event
from tests.llama import Llama
from tests.models.clock import Time
from tests.services import KEY, EmbeddingService, Received, Reply, error

ASKED = [Message("system", "Be brief."), Message("user", "How tall is an oak?")]


@pytest.fixture(autouse=True)
def nobodys_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService(rule=lambda request: said("30 metres")) as running:
        yield running


Make = Callable[..., ServiceChat]


@pytest.fixture
def make(service: EmbeddingService) -> Iterator[Make]:
    made: list[ServiceChat] = []

    def call(**more: Any) -> ServiceChat:
        settings = ChatSettings(**({"timeout_seconds": 5.0} | more))
        made.append(ServiceChat("toy", service.url, KEY, settings, clock=Time().clock))
        return made[-1]

    yield call
    for chat in made:
        chat.close()


def nowhere() -> ModelPlace:
    """No service keeps a model here."""
    raise AssertionError("a service needs no place for models")


def said(content: object, **more: object) -> Reply:
    """The protocol's answer with this content."""
    message = {"role": "assistant", "content": content, **more}
    return Reply(body={"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})


def test_a_reply_is_one_request_that_stands_by_itself(service: EmbeddingService, make: Make) -> None:
    chat = make(temperature=0.5)
    assert chat.reply(ASKED) == "30 metres"
    assert chat.reply(ASKED[1:], max_tokens=7) == "30 metres"
    system, user = ({"role": turn.role, "content": turn.content} for turn in ASKED)
    assert [request.body for request in service.requests] == [
        {"model": "toy", "messages": [system, user], "temperature": 0.5},
        {"model": "toy", "messages": [user], "temperature": 0.5, "max_tokens": 7},
    ]
    assert service.requests[0].path == "/v1/chat/completions"
    assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert chat.name == "openai:toy"
    assert KEY not in repr(chat)


def test_a_lone_surrogate_is_sent_as_a_question_mark(service: EmbeddingService, make: Make) -> None:
    make().reply([Message("user", "a\udcffb")])
    assert service.requests[0].body["messages"][0]["content"] == "a?b"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (" 7\n", " 7\n"),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}], "ab"),
        (["a", {"text": "b"}, {"text": None}], "ab"),
    ],
)
def test_the_text_is_taken_from_either_form(service: EmbeddingService, make: Make, content: object, text: str) -> None:
    service.rule = lambda request: said(content)
    assert make().reply(ASKED) == text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (said(None, refusal="I won't").body, "the model refuses: I won't"),
        (said("", refusal="").body, 'a reply without text: {"choices"'),
        (said(" \n").body, "a reply without text"),
        (said(None).body, "a reply without text"),
        (said([{"type": "image_url"}]).body, "a reply without text"),
        ({"choices": []}, "an answer of no known form: "),
        ({"choices": [{"text": "7"}]}, "an answer of no known form"),
        ({"choices": {"message": 1}}, "an answer of no known form"),
        ({"error": {"message": f"bad {KEY}"}}, r"an error in place of a reply: bad \(hidden\)"),
        ("7", "an answer of no known form"),
        (None, "an answer of no known form"),
    ],
)
def test_an_answer_without_text_is_quoted(service: EmbeddingService, make: Make, body: object, words: str) -> None:
    service.rule = lambda request: Reply(body=body)
    with pytest.raises(RagcliError, match=f"openai:toy: .*{words}") as caught:
        make().reply(ASKED)
    assert len(caught.value.message) < 300
    assert KEY not in caught.value.message


def test_a_passing_failure_is_tried_again(service: EmbeddingService, make: Make) -> None:
    service.script(error(503, "busy"))
    assert make(retries=1).reply(ASKED) == "30 metres"
    service.script(error(503, "busy"), error(503, "busy"))
    with pytest.raises(RemoteError, match=r"503 Service Unavailable: .*busy"):
        make(retries=1).reply(ASKED)


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "chat.key_variable"), (404, "chat.base_url"), (403, "OPENAI_API_KEY")],
)
def test_a_lasting_failure_says_what_to_check(service: EmbeddingService, make: Make, status: int, hint: str) -> None:
    service.rule = lambda request: error(status, "no")
    with pytest.raises(RemoteError) as caught:
        make().reply(ASKED)
    assert hint in caught.value.hint
    assert len(service.requests) == 1


def modern(request: Received) -> Reply:
    """As OpenAI's reasoning models refuse what older ones take."""
    if "max_tokens" in request.body:
        return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    if "temperature" in request.body:
        return error(400, "Unsupported value: 'temperature' does not support 0.0 with this model.")
    return said("ok")


def test_a_model_that_refuses_a_parameter_is_asked_without_it(service: EmbeddingService, make: Make) -> None:
    service.rule = modern
    chat = make()
    assert [chat.reply(ASKED, max_tokens=9), chat.reply(ASKED, max_tokens=9)] == ["ok", "ok"]
    assert len(service.requests) == 4
    assert service.requests[-1].body["max_completion_tokens"] == 9
    service.rule = lambda request: error(400, "Unsupported temperature, unsupported max_completion_tokens")
    with pytest.raises(RemoteError, match="400 Bad Request"):
        chat.reply(ASKED, max_tokens=9)


def test_no_time_is_no_request(service: EmbeddingService) -> None:
    chat = ServiceChat("toy", service.url, KEY, ChatSettings(), left=lambda: 0.0)
    with pytest.raises(RemoteError, match="no time is left"):
        chat.reply(ASKED)
    assert service.requests == []


# --- from settings


def settings(service: EmbeddingService, **more: Any) -> Settings:
    return Settings(chat=ChatSettings(**({"model": "toy", "base_url": service.url} | more)))


def test_it_is_opened_by_its_settings(service: EmbeddingService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_chat(settings(service), ignore_event, place=nowhere).reply(ASKED) == "30 metres"
    assert "authorization" not in service.requests[0].headers
    monkeypatch.setenv("OWN_KEY", KEY)
    chat = open_chat(settings(service, key_variable="OWN_KEY"), ignore_event, place=nowhere, model="other")
    chat.reply(ASKED)
    assert service.requests[1].headers["authorization"] == f"Bearer {KEY}"
    assert service.requests[1].body["model"] == "other"
    assert chat.name == "openai:other"


def test_the_environment_may_name_the_service(service: EmbeddingService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    open_chat(settings(service, base_url=None), ignore_event, place=nowhere).reply(ASKED)
    assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_without_a_model_or_a_service_it_says_what_to_set(service: EmbeddingService) -> None:
    with pytest.raises(UsageError, match="no language model is named") as caught:
        open_chat(settings(service, model=None), ignore_event, place=nowhere)
    assert "chat.model" in caught.value.hint
    with pytest.raises(UsageError, match="no service is named") as caught:
        open_chat(settings(service, base_url=None), ignore_event, place=nowhere)
    assert "chat.base_url" in caught.value.hint


# --- a real server


def test_a_real_server_answers(llama: Llama) -> None:
    chat = open_chat(Settings(chat=ChatSettings(model=llama.model, base_url=llama.url)), ignore_event, place=nowhere)
    assert chat.reply([Message("user", "Say hello.")], max_tokens=8).strip()
    chat.close()


def test_a_real_server_says_what_is_wrong(llama: Llama) -> None:
    chat = open_chat(Settings(chat=ChatSettings(model=llama.model, base_url=llama.url)), ignore_event, place=nowhere)
    with pytest.raises(RemoteError, match="400 Bad Request"):
        chat.reply([Message("user", "word " * 5000)])  # more than its window
    chat.close()
