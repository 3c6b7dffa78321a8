"""A language model that runs here: a .gguf file in llama.cpp, in this process (spec M9). The owner of xllamacpp.

It is loaded at the first use. llama.cpp works in a thread of its own, so that Ctrl-C is heard while it does; what ends
the wait (an error, an interrupt) also ends the writing. The model's own template makes a prompt of the messages, its
own tokenizer counts. Its server listens on a free port of 127.0.0.1 while it is open: that is how tokens are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from ragcli import config
from ragcli.errors import ModelMissing, RagcliError, UsageError
from ragcli.models import catalogue, pull
from ragcli.models.chat_reply import ROOM_HINT, ServerError, Writing, as_sent
from ragcli.models.http import HttpClient, Service
from ragcli.models.windows import whole
from ragcli.options import Settings
from ragcli.types import ChatReply, Message, Wish

if TYPE_CHECKING:
    from ragcli.models.place import ModelPlace

INSTALL = "pip install 'ragcli[llm]' (xllamacpp), or use a service: chat.base_url"
WINDOW = 8192  # tokens, where the model was trained for as many: 32,768 take half a gigabyte of memory more
MAGIC = b"GGUF"
LINGER = 1.0  # seconds to wait for llama.cpp to notice that nobody listens


def open_gguf(name: str, settings: Settings, place: Callable[[], ModelPlace]) -> LocalChat:
    """The model of that name: a chat model of the catalogue, fetched where it is not here yet, or a .gguf file.

    Raises: UsageError: no such model, no gguf file; ModelMissing: xllamacpp, or the model, is not here; RemoteError.
    """
    try:
        import xllamacpp  # noqa: F401 - whether it is there, before a model is fetched
    except ImportError as error:
        raise ModelMissing(f"gguf:{name}: xllamacpp is not installed ({error})", INSTALL) from None
    return LocalChat(name, _file(name, place), settings)


def _file(name: str, place: Callable[[], ModelPlace]) -> Path:
    if not config.names_gguf(name):
        entry = catalogue.model(name)
        if entry.kind != "chat":
            raise UsageError(f"{name} is no chat model but of kind {entry.kind}", "ragcli models list")
        return pull.ensure(name, place()) / entry.files[0].name
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"chat.model = {name}: {error.strerror}", "name a .gguf file") from error
    if magic != MAGIC:
        raise UsageError(f"chat.model = {name}: this is no gguf file", "its first four bytes are not GGUF")
    return path


class LocalChat:
    """A ChatModel. One reply at a time."""

    def __init__(self, name: str, file: Path, settings: Settings) -> None:
        self._model = Path(name).name
        self._file, self._settings = file, settings
        self._closed = False

    def __repr__(self) -> str:
        return f"LocalChat({self._model!r})"

    @property
    def name(self) -> str:
        """`gguf:` and the model."""
        return f"gguf:{self._model}"

    @cached_property
    def window(self) -> int:
        """The tokens of prompt and reply together: what was asked for, no more than the model was trained for."""
        known = self._http.get("v1/models")["data"][0]["meta"]
        return int(min(known["n_ctx"], known["n_ctx_train"]))

    def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        """The text of the reply. Raises: RagcliError."""
        return self.write(messages, Wish(max_tokens=max_tokens), lambda _: None).text

    def write(self, messages: Sequence[Message], wish: Wish, on_text: Callable[[str], None]) -> ChatReply:
        """The reply, piece by piece (`types.ChatModel`). Raises: RagcliError."""
        writing, problem = Writing(on_text), ""
        try:
            for chunk in self._chunks(self._body(messages, wish)):
                writing.chunk(chunk)
        except ServerError as error:
            problem = f"{self.name}: {error}"
        writing.end()
        if writing.text.strip():
            return writing.reply(problem or ("" if writing.has_ended else f"{self.name}: the reply broke off"))
        if problem:
            raise RagcliError(problem, ROOM_HINT if "context" in problem else "")
        thought = "the model thought, and wrote no answer" if writing.reasoning else "a reply without text"
        raise RagcliError(f"{self.name}: {thought}")

    def count(self, text: str) -> int:
        """The tokens of the text; what looks like a token of the model's own making counts as text."""
        return len(self._http.post("tokenize", {"content": whole(text), "parse_special": False})["tokens"])

    def close(self) -> None:
        """Frees the model. For good."""
        self._closed = True
        self.__dict__.pop("_server", None)
        if http := self.__dict__.pop("_http", None):
            http.close()

    @cached_property
    def _server(self) -> Any:
        if self._closed:
            raise RagcliError(f"{self.name} is closed")
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._file)
        params.n_ctx = self._settings.chat.context_window or WINDOW
        params.n_parallel = 1
        params.port = 0
        params.verbosity = -1  # it would write to standard error
        params.ui = False
        if self._settings.models.threads:
            params.cpuparams.n_threads = self._settings.models.threads
        try:
            return xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise RagcliError(f"{self.name}: llama.cpp can't load {self._file}: {error}") from error

    @cached_property
    def _http(self) -> HttpClient:
        return HttpClient(Service(name=self.name, base_url=self._server.listening_address, is_ours=True))

    def _body(self, messages: Sequence[Message], wish: Wish) -> dict[str, object]:
        sent = [as_sent(message) for message in messages]
        body = {"messages": sent, "temperature": self._settings.chat.temperature, "stream": True}
        asked = {"max_tokens": wish.max_tokens, "seed": wish.seed}
        return {**body, "stream_options": {"include_usage": True}, **{k: v for k, v in asked.items() if v is not None}}

    def _chunks(self, body: dict[str, object]) -> Iterator[Any]:
        """What llama.cpp sends, as it comes; the thread that it works in stops when nobody takes any more."""
        server = self._server
        came: SimpleQueue[Any] = SimpleQueue()
        unwanted, end = Event(), object()

        def take(chunk: Any) -> bool:
            came.put(chunk)
            return unwanted.is_set()

        def work() -> None:
            try:
                answer = server.handle_chat_completions(body, take)
                if answer is not None:
                    came.put(answer)
            except Exception as error:  # whatever it is, it must reach the thread that waits
                came.put({"error": {"message": str(error)}})
            finally:
                came.put(end)

        thread = Thread(target=work, daemon=True)
        thread.start()
        try:
            while (chunk := came.get()) is not end:
                yield chunk
        finally:
            unwanted.set()
            thread.join(LINGER)
