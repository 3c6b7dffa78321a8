"""The folder in which a model is put together, `cache/.partial/NAME`, for one process at a time (spec M3).

The lock is a file beside it (the owner of `filelock`), which the kernel lets go when a process is killed; what that one
left is there for the next. Fetches nothing (`pull` and `snapshot` do).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragcli.models.place import ModelPlace

PARTIAL = ".partial"


@contextmanager
def room(name: str, place: ModelPlace, *, shown: str = "") -> Iterator[Path]:
    """The folder for what is not whole yet, while no other process works on this model; waiting for it is told.

    `name` may have a slash. `shown`: what people call the model, where that is not its name.
    Raises: OSError: it can't be made.
    """
    from filelock import FileLock, Timeout

    folder = place.cache / PARTIAL / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        held = lock.acquire(timeout=0.1)
    except Timeout:
        place.notify(f"another process is fetching {shown or name}; waiting for it")
        held = lock.acquire()
    with held:
        folder.mkdir(exist_ok=True)
        _sweep(folder)
        yield folder


def _sweep(folder: Path) -> None:
    """Remove what a killed pip left; whole wheels and begun downloads stay."""
    for path in folder.glob("pip-*"):
        shutil.rmtree(path, ignore_errors=True)
