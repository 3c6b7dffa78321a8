"""Every error that ragcli raises on purpose, and the exit code that each becomes.

::

    RagcliError                    1
    ├── UsageError (ValueError)    2   a flag, an option, a query or a config that can't be meant
    │   ├── OptionError            2   a value out of range: names option, value and range
    │   ├── ExpressionError        2   a filter or where expression that can't be parsed
    │   └── ConfigError            2   a settings file: names file and line
    ├── IndexUnusable              3   the index is not there, damaged, or not the one that is meant
    │   ├── IndexMissing           3
    │   ├── IndexMismatch          3   built with other settings, or by a newer ragcli
    │   └── IndexCorrupt           3
    ├── IndexLocked                1   another writer holds it
    ├── ReadError                  4   one file that can't be read: reported, never ends a run
    │   ├── NotReadable            4   permissions, I/O, vanished
    │   └── NotSupported           4   binary, unknown, encrypted, image-only, too large
    ├── ModelMissing               1   a model's file is not here and may not be fetched
    └── RemoteError                5   a remote service failed

A message is one line: what, where; `hint` is what to do about it. `cli.main` prints both and exits with `exit_code`
(spec C7, C9). 130 (interrupted) has no class: it is Python's KeyboardInterrupt.
"""

from __future__ import annotations

from collections.abc import Iterable


class RagcliError(Exception):
    """Root of the tree. `message` says what and where, `hint` what to do next (may be empty)."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RagcliError, ValueError):
    """What was asked for can't be meant."""

    exit_code = 2


class OptionError(UsageError):
    """An option's value is out of range."""

    def __init__(self, option: str, value: object, allowed: str) -> None:
        super().__init__(f"{option} = {shortened(repr(value))} is out of range: {allowed}")
        self.option = option
        self.value = value
        self.allowed = allowed


class ExpressionError(UsageError):
    """A filter or where expression that can't be parsed."""


class ConfigError(UsageError):
    """A settings file or variable that can't be used; the message starts with `file:line:` where there is one."""


class IndexUnusable(RagcliError):
    """The index can't serve: absent, damaged, or built otherwise."""

    exit_code = 3


class IndexMissing(IndexUnusable):
    """There is no index at the place that was looked at."""


class IndexMismatch(IndexUnusable):
    """The index was built with other settings than those in force, or by a newer ragcli."""


class IndexCorrupt(IndexUnusable):
    """The file is damaged, or is no index of ours."""


class IndexLocked(RagcliError):
    """Another process is writing to the index."""


class ReadError(RagcliError):
    """One source that can't be read. Ingest reports it and goes on. `kind` is the word to count by (`Problem.kind`)."""

    exit_code = 4

    def __init__(self, message: str, hint: str = "", *, kind: str = "unreadable") -> None:
        super().__init__(message, hint)
        self.kind = kind


class NotReadable(ReadError):
    """The operating system refused: permissions, I/O, a file that vanished."""


class NotSupported(ReadError):
    """Nothing to read in it, or nothing here can read it: binary, encrypted, image-only, too large, malformed."""


class ModelMissing(RagcliError):
    """A model's file is not in the cache, and offline work forbids to fetch it."""


class RemoteError(RagcliError):
    """A remote service failed after all retries."""

    exit_code = 5


def shortened(text: str, most: int = 80) -> str:
    """`text` as a message shows it: what is longer than `most` characters ends in `…`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` when one of `known` is close to `name`, else "": the end of a message."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
