"""A scripted server of chat completions on 127.0.0.1 that sends its answers as raw pieces, as slowly as is wanted.

`with ChatServer(Script(...)) as server:`: each request takes the next script, the last one for ever. A script's pieces
are bytes; `PAUSE` waits until `server.go()` was called once more, `CUT` resets the connection, `HANG_UP` closes it
without the last chunk. With `bytewise` every byte is a chunk of its own. What came in is in `server.requests`.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import msgspec

from tests.services import KEY, Received

PAUSE, CUT, HANG_UP = "pause", "cut", "hang up"


class Script(msgspec.Struct, frozen=True):
    """One answer. `pieces` are sent one by one, each flushed; no `content_type`: the header is not there."""

    pieces: tuple[bytes | str, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = {}
    bytewise: bool = False


def delta(text: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a stream; `more` goes into its delta."""
    return {"choices": [{"index": 0, "delta": {**({} if text is None else {"content": text}), **more}}]}


def finish(reason: str = "stop") -> dict[str, Any]:
    """The chunk that says why it ends."""
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    """The chunk that tells the tokens, without choices."""
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def event(value: object, *, end: str = "\n", space: str = " ", kind: str = "") -> bytes:
    """A server-sent event of this JSON, or of the text as it is."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    head = f"event:{space}{kind}{end}" if kind else ""
    return f"{head}data:{space}{data}{end}{end}".encode()


DONE = event("[DONE]")


def spoken(*texts: str, reason: str = "stop", tokens: tuple[int, int] | None = None, **script: Any) -> Script:
    """A whole stream of these texts."""
    told = [event(usage(*tokens))] if tokens else []
    return Script((*(event(delta(text)) for text in texts), event(finish(reason)), *told, DONE), **script)


def whole(text: str, reason: str = "stop", **more: Any) -> Script:
    """An answer that comes as one."""
    body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}], **more}
    return Script((json.dumps(body).encode(),), content_type="application/json")


def failed(status: int, message: str, **headers: str) -> Script:
    """An error. Header names with `_` for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"error": {"message": message}}).encode()
    return Script((body,), status=status, content_type="application/json", headers=named)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that was reset is no fault."""


class ChatServer:
    """The server, while the `with` lasts."""

    def __init__(self, *scripts: Script) -> None:
        self.requests: list[Received] = []
        self._scripts = list(scripts)
        self._steps = threading.Semaphore(0)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/v1"

    @property
    def environ(self) -> dict[str, str]:
        """The variables with which a command uses this server, past any proxy."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Those of the last request."""
        found: list[dict[str, Any]] = self.requests[-1].body["messages"]
        return found

    def script(self, *scripts: Script) -> None:
        """These come next, in place of what was to come."""
        with self._lock:
            self._scripts = list(scripts)

    def go(self) -> None:
        """One `PAUSE` ends."""
        self._steps.release()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for _step in range(100):
            self._steps.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: Received) -> Script:
        with self._lock:
            self.requests.append(request)
            return self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]

    def _pieces(self, script: Script) -> Iterator[bytes | str]:
        for piece in script.pieces:
            if script.bytewise and isinstance(piece, bytes):
                yield from (piece[at : at + 1] for at in range(len(piece)))
            else:
                yield piece

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                script = server._next(Received(self.command, self.path, headers, json.loads(data), 0.0))
                try:
                    self._send(script)
                except (BrokenPipeError, ConnectionResetError):  # it did not wait for the end
                    self.close_connection = True

            def _send(self, script: Script) -> None:
                self.send_response(script.status)
                for name, value in script.headers.items():
                    self.send_header(name, value)
                if script.content_type:
                    self.send_header("Content-Type", script.content_type)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in server._pieces(script):
                    if piece == CUT:
                        self._cut()
                        return
                    if piece == HANG_UP:
                        self.close_connection = True
                        return
                    if piece == PAUSE:
                        server._steps.acquire()
                        if server._ended.is_set():
                            return
                        continue
                    assert isinstance(piece, bytes)
                    if piece:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def _cut(self) -> None:
                """Resets the connection."""
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        return Handler


def texts(requests: Sequence[Received]) -> list[str]:
    """The last message of each request."""
    return [request.body["messages"][-1]["content"] for request in requests]
