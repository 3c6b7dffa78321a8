"""F19: an answer without any citation says so; a script can insist on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.streams import spoken


@pytest.mark.spec("A9", "C9")
@pytest.mark.parametrize(
    ("text", "warning", "fault"),
    [
        ("Thirty metres.", "the answer cites no source", "the answer cites no source"),
        ("Thirty [Source 1], forty [Source 7].", "the answer cites 7, but the sources are 1 to 2",
         "the answer cites what was not sent"),
        ("[Source 1]", "the answer holds nothing but citations", None),
    ],
)  # fmt: skip
def test_it_is_told(
    text: str, warning: str, fault: str | None, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees(shell, tmp_path)
    with answering(monkeypatch, spoken(text)):
        done = shell("ask", QUESTION, "--json")
        strict = shell("ask", QUESTION, "--json", "--strict-citations")
    assert done.json()["warnings"] == [warning]
    assert done.code == 0
    assert strict.code == (1 if fault else 0)
    assert not fault or f"error: --strict-citations: {fault}" in strict.err
