"""The command line in this process, for tests: what it returns, prints and complains of."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from ragcli.cli import main


class Outcome(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs `ragcli ARGUMENTS` where the test stands."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> Outcome:
        self._capture.readouterr()
        code = main(list(arguments))
        out, err = self._capture.readouterr()
        return Outcome(code, out, err)

    def hits(self, words: str) -> list[dict[str, Any]]:
        """What `ragcli query --format json` finds."""
        found: list[dict[str, Any]] = self("query", words, "--format", "json").json()["hits"]
        return found
