"""Language models: which one `chat` names, and those behind an OpenAI-compatible service (spec M9).

A service is asked by POST `base_url`/chat/completions. Nothing of one call goes into the next. Newer models of OpenAI's
refuse a temperature, and `max_tokens` under its old name, older servers `stream_options`: the request is then sent once
more in the words they take, and so are all later ones. What is sent by HTTP and when it is sent again is `http`'s; what
comes back is read by `chat_reply`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from ragcli import config
from ragcli.errors import RagcliError, RemoteError, UsageError
from ragcli.models.chat_reply import ROOM_HINT, ServerError, Writing, as_sent, shown
from ragcli.models.http import BrokenStream, Clock, HttpClient, Limits, Service, StatusError
from ragcli.options import LOCAL_CHATS, SERVICE, ChatSettings, Engine, Settings
from ragcli.types import ChatModel, ChatReply, Listener, Message, Wish, ignore_event

if TYPE_CHECKING:
    from ragcli.models.place import ModelPlace

KEY_HINT = "check OPENAI_API_KEY, or the variable that chat.key_variable names"
URL_HINT = "check chat.base_url (most services want it to end in /v1) and chat.model"
HINTS = {
    0: "check chat.base_url; a slow service needs more chat.timeout_seconds",
    401: KEY_HINT,
    403: KEY_HINT,
    404: URL_HINT,
    405: URL_HINT,
    413: ROOM_HINT,
}
_TOO_LONG = ("context", "too long", "too many tokens", "n_ctx")  # what services say of a prompt that is


def engine_of(settings: Settings, model: str | None = None) -> Engine:
    """Where `model`, else `chat.model`, would run: "gguf" here, "openai" at a service; "extractive": there is none."""
    name = model or settings.chat.model
    if not name:
        return "extractive"
    is_local = config.names_gguf(name) or name in LOCAL_CHATS
    return "gguf" if is_local and settings.chat.base_url is None else "openai"


def open_chat(
    settings: Settings,
    listen: Listener,
    *,
    place: Callable[[], ModelPlace],
    model: str | None = None,
    engine: Engine | None = None,
    left: Callable[[], float] = lambda: inf,
) -> ChatModel:
    """The language model that `chat` names; `model` stands before `chat.model`, `engine` before what that name says.

    `left`: the seconds that are left for all replies. `place` tells where models are kept.
    Raises: UsageError: there is no model, no key, no usable URL; ModelMissing, RemoteError: a model can't be had.
    """
    name = model or settings.chat.model
    if not name:
        raise UsageError("no language model is named", "set chat.model (--model)")
    if (engine or engine_of(settings, model)) == "gguf":
        from ragcli.models.gguf import open_gguf

        return open_gguf(name, settings, place)
    base_url, key = config.chat_service(settings.chat, environ=os.environ)
    return ServiceChat(name, base_url, key, settings.chat, listen=listen, left=left)


class ServiceChat:
    """A ChatModel. Connects at the first reply."""

    def __init__(
        self,
        model: str,
        base_url: str,
        key: str | None,
        settings: ChatSettings,
        *,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        listen: Listener = ignore_event,
        left: Callable[[], float] = lambda: inf,
    ) -> None:
        """Raises: UsageError: the URL or the key can't be used."""
        self._model = model
        service = Service(name=self.name, base_url=base_url, key=key, hints=HINTS)
        limits = Limits(settings.timeout_seconds, settings.retries, settings.requests_per_minute)
        self._client = HttpClient(service, limits, clock=clock, listen=listen, left=left)
        self._temperature: float | None = settings.temperature
        self._asked_temperature = settings.temperature
        self._most = "max_tokens"
        self._tells_usage = True
        self.window = settings.context_window

    def __repr__(self) -> str:
        return f"ServiceChat({self._model!r})"

    @property
    def name(self) -> str:
        """`openai:` and the model."""
        return f"{SERVICE}{self._model}"

    def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        """The text of the reply. Raises: RemoteError, after all retries; RagcliError where it holds no text."""
        writing = Writing(lambda _: None)
        return self._written(messages, Wish(max_tokens=max_tokens, stream=False), writing).text

    def write(self, messages: Sequence[Message], wish: Wish, on_text: Callable[[str], None]) -> ChatReply:
        """The reply, piece by piece where the service streams (`types.ChatModel`)."""
        return self._written(messages, wish, Writing(on_text))

    def count(self, text: str) -> int | None:  # noqa: ARG002 - a ChatModel's
        """Not known of a service."""
        return None

    def close(self) -> None:
        """Ends the connections, and a pause of another thread, which gets a RemoteError. For good."""
        self._client.close()

    def _written(self, messages: Sequence[Message], wish: Wish, writing: Writing) -> ChatReply:
        answer, problem = None, ""
        try:
            answer = self._asked(messages, wish, writing)
            problem = self._lack(answer, wish, writing)
        except BrokenStream as error:
            problem = "" if writing.has_ended else error.message
        except ServerError as error:
            broken = "the service broke off" if writing.text else "an error in place of a reply"
            problem = f"{self.name}: {broken}: {self._client.quoted(str(error))}"
        writing.end()
        if not writing.text.strip():
            raise self._without_text(writing, problem, answer)
        writing.finish = self._client.quoted(writing.finish)  # anything, where the server wishes us ill
        note = f"{self.name} takes no temperature: {self._asked_temperature:g} was not sent"
        return writing.reply(problem, () if self._temperature == self._asked_temperature else (note,))

    def _lack(self, answer: Any, wish: Wish, writing: Writing) -> str:
        """Why what came is not a whole reply; "" where it is. Raises: RagcliError: it is none at all."""
        if answer is None and wish.stream:
            return "" if writing.has_ended else f"{self.name}: the stream ended before the answer did"
        if not writing.whole(answer):
            raise RemoteError(f"{self.name}: an answer of no known form: {self._client.quoted(shown(answer))}")
        return ""

    def _asked(self, messages: Sequence[Message], wish: Wish, writing: Writing) -> Any:
        """The whole answer; None where it came as a stream, which `writing` has taken."""
        while True:
            body = self._body(messages, wish)
            try:
                if wish.stream:
                    return self._client.stream("chat/completions", body, writing.event)
                return self._client.post("chat/completions", body)
            except StatusError as error:
                if not self._has_adapted(error):
                    raise _hinted(error) from error

    def _body(self, messages: Sequence[Message], wish: Wish) -> dict[str, object]:
        body: dict[str, object] = {"model": self._model, "messages": [as_sent(message) for message in messages]}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if wish.max_tokens is not None:
            body[self._most] = wish.max_tokens
        if wish.seed is not None:
            body["seed"] = wish.seed
        if wish.stream:
            body["stream"] = True
        if wish.stream and self._tells_usage:
            body["stream_options"] = {"include_usage": True}
        return body

    def _has_adapted(self, error: StatusError) -> bool:
        """Whether the next request will lack what this one was refused for."""
        if error.status not in {400, 422}:
            return False
        if self._tells_usage and "stream_options" in error.body:
            self._tells_usage = False
            return True
        if self._most == "max_tokens" and "max_completion_tokens" in error.body:
            self._most = "max_completion_tokens"
            return True
        if self._temperature is not None and "temperature" in error.body and "nsupported" in error.body:
            self._temperature = None
            return True
        return False

    def _without_text(self, writing: Writing, problem: str, answer: Any) -> RagcliError:
        """Why there is none."""
        if problem:
            return RemoteError(problem)
        if writing.refusal.strip():
            return self._error("the model refuses", writing.refusal)
        reply = writing.reply()
        if reply.reasoning:
            wanted = "raise answer.max_tokens (--max-tokens)" if reply.finish == "length" else ""
            return RagcliError(f"{self.name}: the model thought, and wrote no answer", wanted)
        said = self._client.quoted(shown(answer) if answer else reply.finish)
        return RemoteError(f"{self.name}: a reply without text{f': {said}' if said else ''}")

    def _error(self, what: str, said: str) -> RagcliError:
        return RagcliError(f"{self.name}: {what}: {self._client.quoted(said)}")


def _hinted(error: StatusError) -> StatusError:
    """The error, with what to do where the prompt was too long for the model."""
    is_long = error.status in {400, 413, 422} and any(word in error.body.lower() for word in _TOO_LONG)
    if not is_long:
        return error
    return StatusError(error.message, ROOM_HINT, status=error.status, body=error.body)
