"""F07: all chunks of a document were sent, and nobody could see it. `inspect --prompt` has a table of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.answering import QUESTION, trees
from tests.commands import Shell


@pytest.mark.spec("A11")
def test_the_prompt_is_shown_with_the_tokens_of_each_source(shell: Shell, tmp_path: Path) -> None:
    trees(shell, tmp_path)
    value = shell("inspect", QUESTION, "--prompt", "--json").json()
    parts = value["parts"]
    assert [part["source"] for part in parts if part["name"] == "source"] == [1, 2]
    assert [source["document_id"] for source in value["sources"]] == ["oak.md", "elm.md"]
    assert sum(part["tokens"] for part in parts) == value["tokens"]
    text = shell("inspect", QUESTION, "--prompt").out
    tokens = {part["source"]: part["tokens"] for part in parts}
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for number, name in [(1, "oak.md"), (2, "elm.md")]:
        assert f"source {number} {tokens[number]} trees/{name}:1" in lines
    assert f"prompt {value['tokens']}" in lines
    assert sum(line.startswith("[Source ") for line in text.splitlines()) == 2


@pytest.mark.spec("A11", "P8")
def test_what_was_dropped_is_listed_with_its_reason(shell: Shell, tmp_path: Path) -> None:
    trees(shell, tmp_path)
    shown = shell("inspect", QUESTION, "--prompt", "--max-context-tokens", "40")
    assert "dropped: 1" in shown.out
    assert "elm.md#0  budget: needs" in shown.out
    window = shell("inspect", QUESTION, "--prompt", "--max-tokens", "100", "--json")
    assert window.json()["window"] is None
