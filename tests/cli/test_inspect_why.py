"""`inspect --why` as it is read: causes and changes in 80 columns, keys of the JSON, mistakes in its use (spec A10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import indexes
from tests.cases.answering import answering
from tests.commands import Outcome, Shell
from tests.streams import spoken
from tests.why_corpus import NAMES, answer, files, question

OTHER, NAME = NAMES[0], NAMES[7]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """The command line in a folder with an index of forty texts about gauges, without vectors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    indexes.write(tmp_path, files())
    shell = Shell(capsys)
    assert shell("ingest", "notes", "filler").code == 0
    return shell


def why(shell: Shell, words: str, *options: str) -> dict[str, Any]:
    """What `--why --json` says; the exit code is 0 whatever the cause."""
    done = shell("inspect", words, "--why", "--json", *options)
    assert done.code == 0
    value: dict[str, Any] = done.json()
    return value


KEYS = {
    "schema", "question", "search", "cause", "because", "expect", "documents", "expected", "changes", "advice",
    "warnings", "notes",
}  # fmt: skip


@pytest.mark.spec("A10", "A11")
def test_the_json_has_the_same_keys_for_every_cause(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["--expect", answer(NAME)]
    nothing = why(shell, question(NAME), *wanted, "--filter", "path=none/*")
    wrong = why(shell, question(OTHER), *wanted, "-k", "2")
    answered = why(shell, question(NAME), *wanted)
    with answering(monkeypatch, spoken("I don't know.")):
        unused = why(shell, question(NAME), *wanted)
    assert [one["cause"] for one in (nothing, wrong, answered, unused)] == [
        "nothing-retrieved", "wrong-text", "answered", "not-used",
    ]  # fmt: skip
    assert set(nothing) == set(wrong) == KEYS
    assert set(answered) == set(unused) == KEYS | {"answer"}
    for value in (nothing, wrong, answered, unused):
        assert value["schema"] == 1
        assert value["documents"] == [f"{NAME.lower()}.md"]
        (one,) = value["expected"]
        assert set(one) == {"document_id", "chunk_index", "source", "arms", "ranks", "reason"}
        assert set(one["arms"]["bm25"]) == {"rank", "score"}
    assert unused["answer"]["answer"] == "I don't know."
    assert unused["answer"]["engine"] == "openai:toy"
    assert unused["expected"][0]["source"] == 2  # behind the filler, which is shorter
    assert nothing["changes"] == [{"options": "no --filter", "source": 2}]


@pytest.mark.spec("A10")
def test_the_arm_is_shown_with_the_rank_and_score_that_a_deep_query_gives(shell: Shell) -> None:
    value = why(shell, question(OTHER), "--expect", answer(NAME), "-k", "2")
    hits = shell("query", question(OTHER), "-k", "1000", "--json").json()["hits"]
    (hit,) = [hit for hit in hits if hit["document_id"] == f"{NAME.lower()}.md"]
    assert value["expected"][0]["arms"] == {"bm25": {"rank": hit["rank"], "score": hit["score"]}}
    lines = shell("inspect", question(OTHER), "--why", "--expect", answer(NAME), "-k", "2").out.splitlines()
    assert f"    bm25: rank {hit['rank']}, score {hit['score']:.4f}" in lines


@pytest.mark.spec("A10")
@pytest.mark.parametrize(
    ("options", "without"),
    [
        (["-k", "3", "--filter", "path=filler/*"], ["-k", "3"]),
        (["-k", "3", "--where", f'document_id != "{NAME.lower()}.md"'], ["-k", "3"]),
        (["-k", "3", "--max-context-tokens", "45"], ["-k", "3"]),
        (["-k", "1"], []),
    ],
)
def test_a_change_that_is_told_holds_on_the_command_line(shell: Shell, options: list[str], without: list[str]) -> None:
    value = why(shell, question(NAME), "--expect", answer(NAME), *options)
    assert value["cause"] == "wrong-text"
    change = value["changes"][0]
    more = [] if change["options"].startswith("no ") else change["options"].split()
    assert bool(more) is not bool(without)
    sources = shell("inspect", question(NAME), "--prompt", "--json", *without, *more).json()["sources"]
    assert sources[change["source"] - 1]["document_id"] == f"{NAME.lower()}.md"


# -------------------------------------------------------------------------------------------------------------- as text


def shown(shell: Shell, *arguments: str) -> list[str]:
    done = shell("inspect", "--why", *arguments)
    assert done.code == 0
    return done.out.splitlines()


@pytest.mark.spec("A10", "C13")
def test_as_text_it_fits_80_columns_and_labels_stand_in_their_own(shell: Shell) -> None:
    for arguments in (
        (question(OTHER), "--expect", answer(NAME), "-k", "2"),
        (question(NAME), "--expect", answer(NAME)),
        (question(NAME), "--expect", answer(NAME), "--filter", "path=none/*"),
        (question(NAME), "--expect", "the golden key"),
        (question(NAME),),
    ):
        lines = shown(shell, *arguments)
        assert max(map(len, lines)) <= 80
        assert {line[:10].rstrip() for line in lines if line[0] != " "} <= {
            "question", "cause", "expected", "tried", "hint", "answer",
        }  # fmt: skip
        assert lines[0] == f"question  {arguments[0]}"
        assert lines[1].startswith("cause     ")


@pytest.mark.spec("A10")
def test_the_way_through_the_stages_is_one_line(shell: Shell) -> None:
    condition = f'document_id != "{NAME.lower()}.md"'
    lines = shown(shell, question(NAME), "--expect", answer(NAME), "--where", condition)
    at = lines.index(f"  {NAME.lower()}.md#0")
    assert lines[at + 1].startswith("    bm25: rank 2, score ")
    assert lines[at + 2] == "    rank 2 → dropped by where"
    assert lines[at + 3].startswith("    was dropped by where: ")
    assert "tried     no --where: it is source 2" in lines


@pytest.mark.spec("A10")
def test_a_text_that_no_document_holds_sends_to_what_was_ingested(shell: Shell) -> None:
    lines = shown(shell, question(NAME), "--expect", "the golden key")
    assert "          in no document" in lines
    assert any(line.startswith("hint      was the file ingested? ") for line in lines)
    assert not any(line.startswith("tried") for line in lines)


@pytest.mark.spec("A10", "C13")
def test_control_characters_of_a_text_are_shown_as_escapes(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "notes", {"evil.md": "The evil gauge \x1b[31m opens with a red key, they say.\n"})
    assert shell("ingest", "notes").code == 0
    done = shell("inspect", "evil gauge opens", "--why", "--expect", "gauge \x1b[31m opens")
    assert "\x1b" not in done.out
    assert "expected  gauge \\x1b[31m opens" in done.out.splitlines()
    assert "The evil gauge \\x1b[31m opens with a red key" in " ".join(done.out.split())


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.spec("A11", "C7")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--why"], "--why needs a query"),
        (["oak", "--why", "--expect", ""], "--expect goes with --why and holds a text"),
        (["oak", "--why", "--expect", " \n"], "--expect goes with --why and holds a text"),
        (["oak", "--prompt", "--expect", "x"], "--expect goes with --why and holds a text"),
        (["--stats", "--expect", "x"], "--expect goes with --why and holds a text"),
        (["oak", "--why", "--prompt"], "one view at a time: --prompt and --why"),
        (["oak"], "a query (oak) goes with --trace, --prompt or --why"),
        (["--verify"], "--verify goes with --trace, --prompt or --why"),
        (["oak", "--trace", "--verify"], "--verify goes with --prompt or --why"),
        ([" ", "--why"], "the query is empty"),
    ],
)
def test_a_mistake_is_told_in_a_line_with_a_hint(shell: Shell, arguments: list[str], message: str) -> None:
    done: Outcome = shell("inspect", *arguments)
    error, hint = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    assert error == f"error: {message}"
    assert hint.startswith("hint: ")


def test_an_option_without_effect_is_said(shell: Shell) -> None:
    done = shell("inspect", question(NAME), "--why", "--temperature", "1", "--lambda", "0.3")
    assert done.code == 0
    assert "note: --temperature has no effect: extracts need no language model (--model NAME)" in done.err
    assert "note: --lambda has no effect: MMR is off (--mmr)" in done.err


@pytest.mark.spec("C9")
def test_without_an_index_the_code_is_3(shell: Shell) -> None:
    done = shell("inspect", "oak", "--why", "--index", "none.db")
    assert (done.code, done.out) == (3, "")
