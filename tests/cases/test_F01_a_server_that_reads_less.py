"""F01: a prompt longer than the server's context loses its front: 200 OK, and only the tokens read betray it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.answering import QUESTION, answering, trees
from tests.commands import Shell
from tests.streams import spoken, whole


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    "script",
    [
        spoken("Thirty metres [Source 1].", tokens=(40, 6)),
        whole("Thirty metres [Source 1].", usage={"prompt_tokens": 40, "completion_tokens": 6}),
        whole("Thirty metres [Source 1].", prompt_eval_count=40, eval_count=6),  # Ollama's own words
    ],
)
def test_both_figures_are_told(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: object) -> None:
    trees(shell, tmp_path)
    with answering(monkeypatch, script) as _:  # type: ignore[arg-type]
        done = shell("ask", QUESTION, "--json")
    value = done.json()
    sent = value["usage"]["sent_tokens"]
    assert sent > 150
    (warning,) = value["warnings"]
    assert warning.startswith(f"the server read 40 of the prompt's {sent:,} tokens")
    assert f"warning: {warning}" in done.err
    assert done.code == 0


def test_a_server_that_read_it_all_is_not_accused(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees(shell, tmp_path)
    with answering(monkeypatch, spoken("Thirty metres [Source 1].", tokens=(190, 6))):
        assert shell("ask", QUESTION, "--json").json()["warnings"] == []
