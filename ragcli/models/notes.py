"""Small JSON notes that save work: what was hashed or made before. Never trusted for more than that (spec M3).

A note that can't be read is none, and one that can't be written is done without.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(path: Path, kind: type[T]) -> T | None:
    """What stands at `path`, if that is of this kind."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def write(path: Path, value: object) -> None:
    """Put it there, whole or not at all."""
    with suppress(OSError):
        replace(path, msgspec.json.encode(value))


def replace(path: Path, data: bytes) -> None:
    """The bytes at `path`, on disk and whole or not at all; its folder is made. Raises: OSError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        with suppress(OSError):  # where the folder is none, nor can anything be removed from it
            partial.unlink(missing_ok=True)
        raise
