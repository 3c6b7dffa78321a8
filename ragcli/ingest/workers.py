"""Batches through `prepare`, in the order given: in this process while there is little to do, else on all cores.

Workers are spawned, not forked: an open SQLite connection must not be carried into a child
(https://sqlite.org/howtocorrupt.html, 2.6). They end with the process that started them, also when that is killed.
A worker that dies on a file (a parser's crash in C) costs that file only. Writes nothing.
"""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from types import ModuleType
from typing import TYPE_CHECKING

from ragcli.ingest.prepare import Job, Part, Preparation, Prepared, Tools, prepare
from ragcli.types import Problem, Source

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

# A run that ends while workers start may leave a semaphore to multiprocessing's tracker, which removes it and says so
UNTOLD = "ignore:resource_tracker:UserWarning"
TOLD_AFTER = 0.5  # seconds: longer than most batches take

Jobs = tuple[Job, ...]


Waiting = Callable[[Source], None]


def not_told(source: Source) -> None:
    """For those who need not know what is waited for."""


def prepared(
    batches: Iterator[Jobs], preparation: Preparation, *, workers: int, waiting: Waiting = not_told
) -> Iterator[Prepared]:
    """What comes of each batch, in order. Worker processes start when there is more than one batch to begin with.

    `waiting` is told the largest source of the batch that is waited for: when its turn comes in this process, or when
    its worker has kept the others waiting for `TOLD_AFTER` seconds, and again until it is there.
    """
    first = list(islice(batches, 2))
    everything = chain(first, batches)
    if workers < 2 or len(first) < 2:
        return _here(everything, preparation, waiting)
    return _Pool(preparation, workers, waiting).run(everything)


def _largest(batch: Jobs) -> Source:
    return max(batch, key=lambda job: job.source.size).source


def _here(batches: Iterator[Jobs], preparation: Preparation, waiting: Waiting) -> Iterator[Prepared]:
    tools = Tools(preparation)
    try:
        for batch in batches:
            left = batch
            while left:
                waiting(_largest(left))
                result = prepare(left, tools)
                left = result.remaining
                yield result
    finally:
        tools.close()


class _Pool:
    """Worker processes and the batches that are with them."""

    def __init__(self, preparation: Preparation, workers: int, told: Waiting) -> None:
        self.told = told
        self.encoded = pickle.dumps(preparation)
        self.workers = workers
        self.pool: ProcessPoolExecutor | None = None
        self.waiting: deque[tuple[Jobs, Future[Prepared]]] = deque()

    def run(self, batches: Iterator[Jobs]) -> Iterator[Prepared]:
        try:
            self._open()
            for batch in batches:
                self.waiting.append((batch, self._submit(batch)))
                if len(self.waiting) > self.workers:  # what waits here is what bounds the memory
                    yield from self._next()
            while self.waiting:
                yield from self._next()
        finally:
            self._close()

    def _open(self) -> None:
        with _undisturbed():  # a signal that was held back is raised at the end, when there is something to close
            self.pool = _start(self.workers)

    def _close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, batch: Jobs) -> Future[Prepared]:
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool

        assert self.pool is not None
        try:
            with _undisturbed():
                return self.pool.submit(_work, batch, self.encoded)
        except BrokenProcessPool as error:  # it broke while this batch was on its way: `_next` mends it
            future: Future[Prepared] = Future()
            future.set_exception(error)
            return future

    def _next(self) -> Iterator[Prepared]:
        from concurrent.futures.process import BrokenProcessPool

        batch, future = self.waiting.popleft()
        try:
            result = self._result(batch, future)
        except BrokenProcessPool:
            yield from self._mend(batch)
            return
        if result.remaining:
            self.waiting.appendleft((result.remaining, self._submit(result.remaining)))
        yield result

    def _result(self, batch: Jobs, future: Future[Prepared]) -> Prepared:
        from concurrent.futures import wait

        while not wait([future], TOLD_AFTER).done:
            self.told(_largest(batch))
        return future.result()

    def _mend(self, batch: Jobs) -> Iterator[Prepared]:
        """A worker died. Try the batch's sources one by one; those that kill their worker are reported."""
        self._close()
        for job in batch:
            yield _alone(job, self.encoded)
        self._open()
        self.waiting = deque((batch, self._submit(batch)) for batch, _ in self.waiting)


def _alone(job: Job, encoded: bytes) -> Prepared:
    from concurrent.futures.process import BrokenProcessPool

    with _undisturbed():
        pool = _start(1)
    with pool:
        try:
            with _undisturbed():
                future = pool.submit(_work, (job,), encoded)
            return future.result()
        except BrokenProcessPool:
            failure = Problem(job.source.location, "crashed", "the process that read it died")
            return Prepared(parts=[Part(number=job.number, last=job.last, failure=failure)], segments=[])


def _start(workers: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_end_with_parent)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """While workers start: hide the caller's `__main__`, which they would run again, and hold back Ctrl-C and SIGTERM.

    A worker inherits what is held back, so that Ctrl-C, which goes to all processes of a terminal, never reaches it.
    """
    import signal

    main, options = sys.modules["__main__"], list(sys.warnoptions)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    sys.modules["__main__"] = ModuleType("__main__")
    sys.warnoptions.append(UNTOLD)
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        sys.warnoptions[:] = options
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and go when it goes, however it does."""
    import gc
    import os
    import signal
    import threading
    from multiprocessing import parent_process

    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    gc.set_threshold(100_000, 20, 100)  # a batch holds a million small objects and no cycles: looking costs a tenth
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what `_undisturbed` held back while this process started
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=wait, daemon=True).start()


def _work(batch: Sequence[Job], encoded: bytes) -> Prepared:
    return prepare(batch, _tools(encoded))


@cache
def _tools(encoded: bytes) -> Tools:
    preparation: Preparation = pickle.loads(encoded)  # noqa: S301 - from our own parent process
    return Tools(preparation)
