"""F10: the answer is right and its citation wrong. `--verify` holds each sentence against the source that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.answering import answering, trees
from tests.commands import Shell
from tests.streams import spoken

ASKED = ("ask", "oak acorns and elm fungus beetles", "--verify", "--json")


@pytest.mark.spec("A9")
def test_a_sentence_that_only_another_source_says_is_told(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees(shell, tmp_path)
    found = shell("inspect", *ASKED[1:2], "--prompt", "--json").json()["sources"]
    numbers = {source["document_id"]: source["number"] for source in found}
    oak, elm = numbers["oak.md"], numbers["elm.md"]
    right = f"The acorns of an oak feed jays [Source {oak}]."
    wrong = f"An elm dies of a fungus that beetles carry [Source {oak}]."
    with answering(monkeypatch, spoken(f"{right} {wrong}")):
        done = shell(*ASKED)
    value = done.json()
    first, second = value["statements"]
    assert (first["supported"], first["supporting"]) == (True, [oak])
    assert (second["supported"], second["supporting"]) == (False, [elm])
    assert [one["supported"] for one in value["citations"]] == [True, False]
    assert second["why"] == f"[Source {oak}] does not say so; [Source {elm}] does"
    assert f"warning: not supported: “An elm dies of a fungus that beetles carry.”: {second['why']}" in done.err


@pytest.mark.spec("A9", "C9")
def test_a_script_may_insist_on_it(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees(shell, tmp_path)
    with answering(monkeypatch, spoken("Granite holds much quartz and feldspar [Source 1].")):
        assert shell(*ASKED).code == 0
        done = shell(*ASKED, "--strict-citations")
    assert done.code == 1
    assert "error: --strict-citations: 1 of 1 statements are not supported" in done.err
    assert done.json()["answer"].startswith("Granite")  # it is not held back
