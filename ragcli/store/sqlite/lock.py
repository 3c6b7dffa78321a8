"""One writer at a time: an advisory lock beside the index, with the name of its holder in it (spec I35).

The lock is the kernel's (`flock(2)`): it ends with the process that holds it, however that ends, so there is no stale
lock to break. What is written in the file only serves the message to those who wait.
POSIX only: where there is no `flock(2)` (Windows) nothing can be written, and it says so; queries take no lock.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ragcli.errors import IndexLocked, RagcliError

WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05


class Holder(msgspec.Struct, frozen=True):
    """Who holds the lock: process, machine, since when (seconds since 1970)."""

    pid: int
    host: str
    since: float


def lock_path(index: str | os.PathLike[str]) -> Path:
    """The file that is locked while the index at `index` is written."""
    return Path(f"{os.fspath(index)}.lock")


def holder(index: str | os.PathLike[str]) -> Holder | None:
    """The last process that took the lock, as far as it is known. It need not hold it any more."""
    try:
        return msgspec.json.decode(lock_path(index).read_bytes(), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None


@contextmanager
def writing(
    index: str | os.PathLike[str], *, wait: float = WAIT_SECONDS, on_wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Be the one writer of the index at `index`; waits up to `wait` seconds. `on_wait` is told once who is waited for.

    Raises: IndexLocked when the other one is not through by then; RagcliError where the system has no `flock`.
    """
    _check_system()
    path = lock_path(index)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise RagcliError(f"{path}: {error.strerror}", "the index's folder must be writable") from error
    try:
        _acquire(file, index, wait, on_wait)
        _sign(file)
        yield
    finally:
        os.close(file)  # the kernel gives the lock back with it


def _check_system() -> None:
    try:
        import fcntl  # noqa: F401 - not on Windows
    except ImportError as error:
        raise RagcliError(
            "this system has no flock(2), without which an index can't be written safely",
            "on Windows: run ingest under WSL; queries work here too",
        ) from error


def _acquire(file: int, index: str | os.PathLike[str], wait: float, on_wait: Callable[[str], None] | None) -> None:
    end = time.monotonic() + wait
    told = False
    while not _try(file):
        if time.monotonic() >= end:
            raise IndexLocked(f"{os.fspath(index)} is being written by {_who(index)}", "run it again when that is done")
        if on_wait and not told:
            on_wait(f"waiting for {_who(index)}")
            told = True
        time.sleep(_POLL_SECONDS)


def _try(file: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(file: int) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, msgspec.json.encode(Holder(os.getpid(), socket.gethostname(), time.time())), 0)


def _who(index: str | os.PathLike[str]) -> str:
    found = holder(index)
    if found is None:
        return "another process"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found.since))
    return f"process {found.pid} on {found.host} since {since}"
