"""F17: `length` does not say which limit it was: that of the answer, or the end of the context."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.streams import spoken


@pytest.mark.spec("A7")
def test_neither_is_named_as_the_one(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees(shell, tmp_path)
    with answering(monkeypatch, spoken("Thirty metres [Source 1], and", reason="length")):
        done = shell("ask", QUESTION, "--max-tokens", "64", "--json")
    (warning,) = done.json()["warnings"]
    assert warning == (
        "the answer ended at a limit (finish_reason length): answer.max_tokens = 64, or the model's window"
    )
    assert (done.code, done.json()["finish"]) == (0, "length")
