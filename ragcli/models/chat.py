"""Replies of a language model behind an OpenAI-compatible service: POST `base_url`/chat/completions (spec M9).

One request a reply, whole, not streamed; nothing of one call goes into the next. Newer models of OpenAI's refuse a
temperature, and `max_tokens` under its old name: the request is then sent once more in the words they take, and so are
all later ones. What is sent by HTTP and when it is sent again is `http`'s.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from ragcli import config
from ragcli.errors import RagcliError, UsageError
from ragcli.models.http import Clock, HttpClient, Limits, Service, StatusError
from ragcli.models.windows import whole
from ragcli.options import SERVICE, ChatSettings, Settings
from ragcli.types import Chat, Listener, Message, ignore_event

KEY_HINT = "check OPENAI_API_KEY, or the variable that chat.key_variable names"
URL_HINT = "check chat.base_url (most services want it to end in /v1) and chat.model"
HINTS = {
    0: "check chat.base_url; a slow service needs more chat.timeout_seconds",
    401: KEY_HINT,
    403: KEY_HINT,
    404: URL_HINT,
    405: URL_HINT,
}


def open_chat(
    settings: Settings, listen: Listener, *, model: str | None = None, left: Callable[[], float] = lambda: inf
) -> Chat:
    """The language model that `chat` names; `model` stands before `chat.model`.

    `left`: the seconds that are left for all replies. Raises: UsageError: there is no model, no key, no usable URL.
    """
    name = model or settings.chat.model
    if not name:
        raise UsageError("no language model is named", "set chat.model")
    base_url, key = config.chat_service(settings.chat, environ=os.environ)
    return ServiceChat(name, base_url, key, settings.chat, listen=listen, left=left)


class ServiceChat:
    """A Chat. Connects at the first reply."""

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
        self._most = "max_tokens"

    def __repr__(self) -> str:
        return f"ServiceChat({self._model!r})"

    @property
    def name(self) -> str:
        """`openai:` and the model."""
        return f"{SERVICE}{self._model}"

    def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        """The text of the reply. Raises: RemoteError, after all retries; RagcliError where it holds no text."""
        return self._text(self._asked(messages, max_tokens))

    def close(self) -> None:
        """Ends the connections, and a pause of another thread, which gets a RemoteError. For good."""
        self._client.close()

    def _asked(self, messages: Sequence[Message], max_tokens: int | None) -> Any:
        while True:
            try:
                return self._client.post("chat/completions", self._body(messages, max_tokens))
            except StatusError as error:
                if not self._has_adapted(error):
                    raise

    def _body(self, messages: Sequence[Message], max_tokens: int | None) -> dict[str, object]:
        sent = [{"role": message.role, "content": whole(message.content)} for message in messages]
        body: dict[str, object] = {"model": self._model, "messages": sent}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if max_tokens is not None:
            body[self._most] = max_tokens
        return body

    def _has_adapted(self, error: StatusError) -> bool:
        """Whether the next request will lack what this one was refused for."""
        if error.status != 400:
            return False
        if self._most == "max_tokens" and "max_completion_tokens" in error.body:
            self._most = "max_completion_tokens"
            return True
        if self._temperature is not None and "temperature" in error.body and "nsupported" in error.body:
            self._temperature = None
            return True
        return False

    def _text(self, answer: Any) -> str:
        message = _message(answer)
        if message is None:
            raise self._error("an answer of no known form", json.dumps(answer, ensure_ascii=False))
        text = _joined(message.get("content"))
        if text.strip():
            return text
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal.strip():
            raise self._error("the model refuses", refusal)
        raise self._error("a reply without text", json.dumps(answer, ensure_ascii=False))

    def _error(self, what: str, said: str) -> RagcliError:
        return RagcliError(f"{self.name}: {what}: {self._client.quoted(said)}")


def _message(answer: Any) -> dict[str, Any] | None:
    """The first choice's message."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def _joined(content: object) -> str:
    """The text of a message's content: a string, or a list of parts, of which some hold text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))
