"""The last query or question that was put to an index, with its options: what `inspect --prompt` shows without a query.

It is kept in the user's own folder of states ($XDG_STATE_HOME/ragcli/last/), readable by its owner alone, one file an
index. Not beside the index: options can name services and code, and an index may come from somebody else. Where it
can't be written it is left out, and the reader says that nothing is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from ragcli import config


class LastQuery(msgspec.Struct, frozen=True):
    """What was asked: the command ("query", "ask"), the text, and the options as they were given, by parameter name."""

    command: str
    text: str
    options: Mapping[str, Any]
    index: str  # its path, what is not ASCII in it escaped: two may share a file's name


def remember(index: Path, command: str, text: str, options: Mapping[str, Any]) -> None:
    """Keeps a query; what was not given is left out."""
    path = _path(index)
    given = {name: value for name, value in options.items() if value not in (None, [])}
    if path is None:
        return
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        data = msgspec.json.encode(LastQuery(command, text, given, _name(index)))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        fresh.replace(path)
    except (OSError, UnicodeEncodeError):  # of an option that is no UTF-8
        return


def recall(index: Path) -> LastQuery | None:
    """The last one; None where there is none, or its file can't be read."""
    path = _path(index)
    if path is None:
        return None
    try:
        last = msgspec.json.decode(path.read_bytes(), type=LastQuery)
    except (OSError, msgspec.DecodeError):
        return None
    return last if last.index == _name(index) else None


def _path(index: Path) -> Path | None:
    folder = config.state_folder(environ=os.environ, home=config.home_folder())
    name = _name(index).encode()
    return folder / "last" / f"{crc32(name):08x}{crc32(name[::-1]):08x}.json" if folder else None


def _name(index: Path) -> str:
    return ascii(str(index.absolute()))
