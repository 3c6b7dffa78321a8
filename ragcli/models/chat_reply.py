"""A reply put together from what a server of chat completions sends: whole, or chunk by chunk (OpenAI's format).

Words that dialects have for the same are read too: the thoughts of a model as `reasoning_content`, `reasoning` or
between <think> and </think> at the beginning; tokens as `prompt_eval_count` and `eval_count` (Ollama). Sends nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ragcli.models.windows import whole
from ragcli.types import ChatReply, Message, Usage

ROOM_HINT = "the prompt may be longer than the model's window: say --max-context-tokens N, or set chat.context_window"
DONE = "[DONE]"
BEGIN, END = "<think>", "</think>"
_MEMBERS = ("prompt_tokens", "prompt_eval_count"), ("completion_tokens", "eval_count")


def as_sent(message: Message) -> dict[str, object]:
    """A message as the protocol has it."""
    sent: dict[str, object] = {"role": message.role, "content": whole(message.content)}
    if message.tool_calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": whole(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


class ServerError(Exception):
    """The server says in the midst of a reply that it failed. The message is the server's."""


class Writing:
    """One reply that is under way: `text` came so far, thoughts aside. `is_done`: its end was told; `finish`: why."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._thoughts = _Thoughts()
        self._said: list[str] = []
        self._reasoning: list[str] = []
        self._usage = Usage()
        self.finish = ""
        self._half = ""  # of a character: what is written as two \\u… may come in two pieces
        self.refusal = ""
        self.is_done = False

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join(self._said)

    @property
    def reasoning(self) -> str:
        """What was thought so far."""
        return "".join(self._reasoning)

    def event(self, kind: str, data: str) -> bool:
        """Takes a server-sent event; whether it was the last one. Raises: ServerError."""
        for value in _values(data):
            if kind == "error":
                raise ServerError(_message_of(value) or data)
            self.chunk(value)
        self.is_done = any(line.strip() == DONE for line in data.split("\n"))
        return self.is_done

    def chunk(self, chunk: Any) -> None:
        """Takes a chunk of a stream. Raises: ServerError."""
        self._take(chunk, "delta")

    def whole(self, answer: Any) -> bool:
        """Takes an answer that comes as one; whether it has the form of one. Raises: ServerError."""
        self._take(answer, "message")
        self.is_done = True
        return _part(answer, "message") is not None

    def end(self) -> None:
        """Nothing more comes: what was held back is text."""
        if half := _characters(self._half):
            self._half = ""
            self._hear(half)
        self._say(self._thoughts.rest())

    def reply(self, problem: str = "", notes: tuple[str, ...] = ()) -> ChatReply:
        """What there is."""
        return ChatReply(
            text=self.text, finish=self.finish, reasoning=self.reasoning.strip(), usage=self._usage, problem=problem,
            notes=notes,
        )  # fmt: skip

    @property
    def has_ended(self) -> bool:
        """Whether the server said so."""
        return self.is_done or bool(self.finish)

    def _take(self, answer: Any, member: str) -> None:
        if not isinstance(answer, dict):
            return
        if error := answer.get("error") or (answer if answer.get("object") == "error" else None):
            raise ServerError(_message_of(error) or shown(error))
        self._usage = _joined_usage(self._usage, answer)
        if isinstance(reason := _first(answer).get("finish_reason"), str) and reason:
            self.finish = _characters(reason)
        part = _part(answer, member) or {}
        for name in ("reasoning_content", "reasoning"):
            if isinstance(thought := part.get(name), str):
                self._reasoning.append(_characters(thought))
                break
        if isinstance(refusal := part.get("refusal"), str):
            self.refusal += refusal
        if text := self._half + _joined(part.get("content")):
            self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
            self._hear(_characters(text.removesuffix(self._half)))

    def _hear(self, text: str) -> None:
        said, thought = self._thoughts.parted(text)
        self._reasoning.append(thought)
        self._say(said)

    def _say(self, text: str) -> None:
        if text:
            self._said.append(text)
            self._on_text(text)


class _Thoughts:
    """Parts what a model thinks from what it says, piece by piece; what may still become a mark is held back."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "before"  # before, thinking, after (its blank lines are to come), saying

    def parted(self, piece: str) -> tuple[str, str]:
        """What is said and what is thought in this piece and what was held back."""
        said, thought = "", ""
        self._held += piece
        if self._state == "before":
            start = self._held.lstrip()
            if BEGIN.startswith(start[: len(BEGIN)]) and len(start) < len(BEGIN):
                return "", ""
            self._state = "thinking" if start.startswith(BEGIN) else "saying"
            self._held = start[len(BEGIN) :] if self._state == "thinking" else self._held
        if self._state == "thinking":
            thought, mark, rest = self._held.partition(END)
            if not mark:
                kept = next((n for n in range(len(END) - 1, 0, -1) if self._held.endswith(END[:n])), 0)
                thought, self._held = self._held[: len(self._held) - kept], self._held[len(self._held) - kept :]
                return "", thought
            self._held, self._state = rest, "after"
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "saying" if self._held else "after"
        said, self._held = self._held, ""
        return said, thought

    def rest(self) -> str:
        """What was held back for a mark that did not come."""
        held, self._held = self._held, ""
        return held if self._state == "before" else ""


def _values(data: str) -> Iterator[Any]:
    """The JSON of an event; of one whose lines were not parted by blank ones, that of each line.

    Raises: ServerError: there is none.
    """
    for text in [data] if _is_json(data) else data.split("\n"):
        if text.strip() in {"", DONE}:
            continue
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            raise ServerError(f"what is no JSON: {text}") from None


def _is_json(data: str) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _first(answer: dict[str, Any]) -> dict[str, Any]:
    """The first choice; {} where there is none, as in a chunk that tells the usage."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _part(answer: Any, member: str) -> dict[str, Any] | None:
    part = _first(answer).get(member) if isinstance(answer, dict) else None
    return part if isinstance(part, dict) else None


def _message_of(error: Any, depth: int = 4) -> str:
    """The words of an error: {"message": …}, {"error": {"message": …}}, {"error": "…"}, or "…"."""
    if isinstance(error, str):
        return error
    if not isinstance(error, dict) or not depth:
        return ""
    found = (_message_of(error.get(name), depth - 1) for name in ("message", "error", "detail"))
    return next((words for words in found if words), "")


def shown(value: Any) -> str:
    """What a server sent, as JSON, to be quoted."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "what is nested too deep"


def _characters(text: str) -> str:
    """The text with pairs of surrogates as the characters that they are; what is left alone as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _joined(content: object) -> str:
    """The text of a message's content: a string, or a list of parts, of which some hold text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _joined_usage(known: Usage, answer: dict[str, Any]) -> Usage:
    """What is known, with what this answer or chunk says of tokens."""
    stated = answer.get("usage") if isinstance(answer.get("usage"), dict) else {}
    found = [next((n for name in names if (n := _count((stated or {}).get(name, answer.get(name)))) is not None), None)
             for names in _MEMBERS]  # fmt: skip
    prompt, completion = found
    return Usage(
        known.prompt_tokens if prompt is None else prompt, known.completion_tokens if completion is None else completion
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
