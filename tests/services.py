"""A scripted service on 127.0.0.1 that speaks the OpenAI-compatible embeddings protocol.

`with EmbeddingService() as service:` answers every request with real vectors: words hashed into `DIMENSION` places, so
texts that share words are near. Replies given to it come first, one a request; a rule (`refusing`, `limited_to`, any
function) stands in for the rest. What came in is in `service.requests`, with headers and times.
"""

from __future__ import annotations

import json
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from zlib import crc32

import msgspec
import numpy as np

DIMENSION = 32
KEY = "sk-test-3f9/aB+c"  # with what a URL or JSON may escape


class Received(msgspec.Struct, frozen=True):
    """A request as it came; header names in lower case; `at` by the service's clock."""

    method: str
    path: str  # with a query, and the whole URL where it came by a proxy
    headers: Mapping[str, str]
    body: Any  # None where it is no JSON
    at: float

    @property
    def texts(self) -> list[str]:
        texts: list[str] = self.body["input"]
        return texts


class Reply(msgspec.Struct, frozen=True):
    """An answer: `body` as JSON unless it is bytes. None as `status` = the connection ends without a word."""

    status: int | None = 200
    body: Any = None
    headers: Mapping[str, str] = {}
    delay: float = 0.0  # seconds before it; ends when the service does


Rule = Callable[[Received], Reply]


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """Counts of the words of `text`, each at the place its CRC-32 gives it; not normalised."""
    places = [crc32(word.encode()) % dimension for word in re.findall(r"\w+", text.lower())]
    counts: list[float] = np.bincount(places or [0], minlength=dimension).astype(float).tolist()
    return counts


def unit(vector: Sequence[float]) -> list[float]:
    """The vector at length 1, as an embedder gives it."""
    array = np.asarray(vector, dtype=float)
    normalized: list[float] = (array / np.sqrt((array * array).sum())).tolist()
    return normalized


def items(vectors: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]


def answer(vectors: Sequence[Any]) -> Reply:
    """The protocol's answer with these vectors, in order."""
    return Reply(body={"object": "list", "model": "toy", "data": items(vectors)})


def embeddings(request: Received) -> Reply:
    """The vectors of the texts of a request, of the dimension it asks for."""
    dimension = request.body.get("dimensions", DIMENSION)
    return answer([vector_of(text, dimension) for text in request.texts])


def error(status: int, message: str, **headers: str) -> Reply:
    """An error as such services word it. Header names with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": {"message": message, "type": "invalid_request_error"}}, named)


def refusing(word: str, status: int = 400) -> Rule:
    """Answers a request with an error when a text of it holds `word`."""
    return lambda request: (
        error(status, f"can't embed {word}") if any(word in text for text in request.texts) else embeddings(request)
    )


def limited_to(*, texts: int = 2**31, words: int = 2**31, status: int = 400) -> Rule:
    """Refuses a request of more texts, or of more words in all, than these."""

    def rule(request: Received) -> Reply:
        if len(request.texts) > texts or sum(len(text.split()) for text in request.texts) > words:
            return error(status, "Too many tokens overall, split into more batches.")
        return embeddings(request)

    return rule


def as_base64(vector: Sequence[float]) -> str:
    """float32, little-endian, as `encoding_format: base64` gives them."""
    return b64encode(np.asarray(vector, "<f4").tobytes()).decode()


class EmbeddingService:
    """The service, while the `with` lasts. `url` is what `embedding.base_url` takes."""

    def __init__(self, *replies: Reply, rule: Rule = embeddings, now: Callable[[], float] = time.monotonic) -> None:
        self.requests: list[Received] = []
        self.rule = rule
        self._replies = list(replies)
        self._now = now
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/v1"

    @property
    def environ(self) -> dict[str, str]:
        """The variables with which a command uses this service, past any proxy."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    @property
    def texts(self) -> list[str]:
        """All texts that came, in order."""
        return [text for request in self.requests for text in request.texts]

    def script(self, *replies: Reply) -> None:
        """These come next."""
        self._replies.extend(replies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply_to(self, request: Received) -> Reply:
        with self._lock:
            self.requests.append(request)
            scripted = self._replies.pop(0) if self._replies else None
        reply = scripted or self.rule(request)
        if reply.delay:
            self._ended.wait(reply.delay)
        return reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service, now = self, self._now

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: two of them wait 40 ms for each other's acknowledgement

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.command, self.path, headers, _json(data), now())
                self._send(service.reply_to(received))

            do_GET = do_POST  # noqa: N815 - the name that the server looks up

            def _send(self, reply: Reply) -> None:
                if reply.status is None:
                    self.close_connection = True
                    return
                data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                try:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):  # it did not wait for the answer
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        return Handler


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
