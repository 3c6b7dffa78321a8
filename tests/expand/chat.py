"""A language model that says what it was told to, for the tests of what is written before a retrieval."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragcli.errors import RagcliError
from ragcli.types import ChatReply, Message, Wish


class ScriptedChat:
    """A `types.Chat`: the given replies in turn; an error is raised. `asked`, `limits`: what came with each call."""

    name = "toy"
    window: int | None = None

    def __init__(self, *replies: str | RagcliError) -> None:
        self._replies = list(replies)
        self.asked: list[Sequence[Message]] = []
        self.limits: list[int | None] = []

    def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        self.asked.append(messages)
        self.limits.append(max_tokens)
        found = self._replies.pop(0)
        if isinstance(found, RagcliError):
            raise found
        return found

    def write(self, messages: Sequence[Message], wish: Wish, on_text: Callable[[str], None]) -> ChatReply:
        text = self.reply(messages, max_tokens=wish.max_tokens)
        on_text(text)
        return ChatReply(text=text)

    def count(self, text: str) -> int | None:
        return None

    def close(self) -> None: ...
