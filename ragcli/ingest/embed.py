"""Chunks without vectors get theirs, beside the reading and after it (spec I22, I34, I39, M11).

A thread of its own looks for committed documents that wait for vectors, embeds them a window at a time, and hands the
vectors over to the writer; so the keyword index is never held up, and whatever ends a run (a kill, a dead endpoint)
the next one goes on from there. Text that was embedded before is not embedded again. Writes nothing itself: SQLite has
one writer, which is the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from queue import Empty, Full, Queue
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from ragcli.errors import RemoteError
from ragcli.store.sqlite import documents, schema, vectors
from ragcli.store.sqlite.vectors import Pending, Row
from ragcli.types import Embedder

if TYPE_CHECKING:
    from ragcli.store.sqlite.schema import Connection

WINDOW = 256  # chunks that are embedded together: a second or two of a small model's time
FIRST = 32  # chunks of the first window: progress is soon seen
AHEAD = 4  # windows that may wait for the writer: they bound the memory
DOCUMENTS = 512  # asked for at a time
RECENT = 16_384  # vectors kept in memory until they can be found in the index
TRIES = 2  # of a window whose embedding failed as a whole
PATIENCE = 3.0  # seconds that an interrupted run waits for what is being embedded; it is lost either way
POLL = 0.2  # seconds between two looks for work, or at whether to stop


class Encoded(msgspec.Struct, frozen=True):
    """One window: the rows to write, and what became of the documents that ended in it (None, or why not)."""

    rows: list[Row]
    settled: list[tuple[int, str | None]]
    embedded: int
    reused: int


class Encoding:
    """The thread, and what it hands over. A context manager: leaving it ends the thread."""

    def __init__(self, index: Path, open_embedder: Callable[[], Embedder], *, window: int = WINDOW) -> None:
        self._index, self._open, self._window = index, open_embedder, window
        self._thread: threading.Thread | None = None
        self._done: Queue[Encoded] = Queue(AHEAD)
        self._news, self._complete, self._stop = threading.Event(), threading.Event(), threading.Event()
        self._embedder: Embedder | None = None
        self.failure: BaseException | None = None

    def __enter__(self) -> Encoding:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._news.set()
        if error is not None and self._embedder is not None:
            self._embedder.close()  # ends the pause between two tries of a request
        if self._thread is not None:
            self._thread.join(None if error is None else PATIENCE)

    def wake(self) -> None:
        """There are committed documents that wait for vectors."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)
            self._thread.start()
        self._news.set()

    def ready(self) -> Iterator[Encoded]:
        """The windows that are there now; waits for none."""
        while True:
            try:
                yield self._done.get_nowait()
            except Empty:
                return

    def rest(self) -> Iterator[Encoded | None]:
        """All other windows: nothing more will be committed. None from time to time while there is none."""
        self._complete.set()
        self._news.set()
        while self._thread is not None:
            ended = not self._thread.is_alive()
            try:
                yield self._done.get(timeout=0 if ended else POLL)
            except Empty:
                if ended:
                    return
                yield None

    def _run(self) -> None:
        try:
            with closing(schema.open_reader(self._index)) as db, closing(self._open()) as embedder:
                self._embedder = embedder
                work = _Work(db, embedder, self._window)
                while not self._stop.is_set():
                    self._news.clear()
                    is_last = self._complete.is_set()
                    for window in work.windows():
                        if not self._hand_over(window):
                            return
                    if is_last:
                        return
                    self._news.wait()
        except BaseException as error:  # the writer's thread raises or reports it
            self.failure = error

    def _hand_over(self, window: Encoded) -> bool:
        """False when nobody wants it any more."""
        while not self._stop.is_set():
            try:
                self._done.put(window, timeout=POLL)
            except Full:
                continue
            return True
        return False


class _Work:
    """Waiting documents, from the first on, each once."""

    def __init__(self, db: Connection, embedder: Embedder, window: int) -> None:
        self._db, self._embedder, self._window = db, embedder, window
        self._size = min(FIRST, window)
        self._after = 0
        self._recent: dict[bytes, bytes] = {}

    def windows(self) -> Iterator[Encoded]:
        """What can be embedded now."""
        window: list[Pending] = []
        ended: list[int] = []
        failed: dict[int, str] = {}
        for number, chunk in self._pending():
            if chunk is None:
                ended.append(number)
            else:
                window.append(chunk)
            if len(window) >= self._size:
                yield self._encoded(window, ended, failed)
                window, ended, self._size = [], [], min(2 * self._size, self._window)
        if window or ended:
            yield self._encoded(window, ended, failed)

    def _pending(self) -> Iterator[tuple[int, Pending | None]]:
        """Document by document its chunks without vectors, then None."""
        while numbers := vectors.waiting(self._db, self._after, DOCUMENTS):
            for number in numbers:
                for chunk in documents.without_vectors(self._db, number):
                    yield number, chunk
                self._after = number
                yield number, None

    def _encoded(self, window: Sequence[Pending], ended: Sequence[int], failed: dict[int, str]) -> Encoded:
        texts = {chunk.hash: chunk.text for chunk in window}
        found = {**vectors.known(self._db, list(texts)), **{h: self._recent[h] for h in texts if h in self._recent}}
        new = [one for one in texts if one not in found]
        fresh, problems = self._embed([texts[one] for one in new])
        vector_of = {**found, **{one: fresh[at] for at, one in enumerate(new) if at not in problems}}
        reason_of = {new[at]: reason for at, reason in problems.items()}
        for chunk in window:
            if chunk.hash in reason_of:
                failed.setdefault(chunk.document, reason_of[chunk.hash])
        self._remember({one: vector_of[one] for one in new if one in vector_of})
        rows = [(chunk.chunk, chunk.hash, vector_of[chunk.hash]) for chunk in window if chunk.hash in vector_of]
        settled = [(number, failed.pop(number, None)) for number in ended]
        embedded = len(new) - len(problems)
        return Encoded(rows, settled, embedded, len(rows) - embedded)

    def _embed(self, texts: Sequence[str]) -> tuple[list[bytes], dict[int, str]]:
        if not texts:
            return [], {}
        for left in reversed(range(TRIES)):
            try:
                found = self._embedder.passages(texts)
                break
            except RemoteError:  # what fails here would fail again
                if not left:
                    raise
        return [vectors.packed(vector) for vector in found.vectors], dict(found.problems)

    def _remember(self, new: dict[bytes, bytes]) -> None:
        if len(self._recent) + len(new) > RECENT:
            self._recent.clear()
        self._recent.update(new)
