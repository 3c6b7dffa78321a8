"""An HTTP origin of files on the loopback interface, with faults by order; and toy models whose bytes it holds."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ragcli.models.catalogue import File, Model, Source, Wheel

REVISION = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "toys/toy"


class Origin:
    """Serves `files` by path. `faults`: path -> what happens to its next answers, one each; then all is well.

    "404" and "500" are statuses; "cut N" ends the answer after N bytes; "hang N" sends N bytes and then nothing, until
    `release` is set; "whole" ignores a Range. `seen` are the requests: (path, Range or "").
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.faults: dict[str, list[str]] = {}
        self.seen: list[tuple[str, str]] = []
        self.release = threading.Event()
        self.hanging = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Origin:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(origin) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range", "")
                origin.seen.append((self.path, asked))
                faults = origin.faults.get(self.path, [])
                origin.answer(self, faults.pop(0) if faults else "", asked)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, fault: str, asked: str) -> None:
        """One answer, whole or with its fault."""
        kind, _, number = fault.partition(" ")
        data = self.files.get(handler.path)
        if data is None or kind.isdecimal():
            handler.send_error(int(kind) if kind.isdecimal() else 404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and kind != "whole" else 0
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(data) - start))
        handler.end_headers()
        handler.wfile.write(data[start : start + int(number)] if number else data[start:])
        handler.wfile.flush()
        if kind == "hang":
            self.hanging.set()
            self.release.wait(30)
        handler.close_connection = True


def hub_path(name: str, revision: str = REVISION) -> str:
    """Where the hub has a file of the toy: its resolve address."""
    return f"/{REPOSITORY}/resolve/{revision}/{name}"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def toy(contents: Mapping[str, bytes], *sources: Source) -> Model:
    """A model called "toy" of these files."""
    files = tuple(File(name, len(data), digest(data)) for name, data in contents.items())
    return Model(name="toy", kind="embedder", description="", licence="MIT", files=files, sources=sources)


def build_wheel(folder: Path, name: str, members: Mapping[str, bytes], wanted: Mapping[str, str]) -> Wheel:
    """A wheel `NAME==1.0` in the folder, with a package that refuses to be imported, as an entry of a catalogue."""
    plain = name.replace("-", "_")
    info = f"{plain}-1.0.dist-info"
    inside = {
        f"{plain}/__init__.py": b"raise SystemExit('a wheel was imported')\n",
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_record(data)},{len(data)}" for path, data in inside.items()]
    path = folder / f"{plain}-1.0-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in inside.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]))
    data = path.read_bytes()
    return Wheel(f"{name}==1.0", len(data), digest(data), wanted)


def _record(data: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
