"""`ragcli query` on a real index: where the query comes from, what goes to which stream, exit codes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from ragcli.cli import main, streams
from tests.cli.test_formats import SCHEMA


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# Reset\n\nReset the torque sensor.\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("The gripper and its torque.\n", encoding="utf-8")
    assert main(["ingest", "a.md", "b.md", "-q"]) == 0
    return tmp_path


def hits(capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capfd.readouterr()
    assert main(["query", *arguments, "--json"]) == 0
    value = json.loads(capfd.readouterr().out)
    jsonschema.validate(value, SCHEMA)
    return [hit["document_id"] for hit in value["hits"]]


@pytest.mark.spec("C11", "C2")
def test_words_are_one_query_and_the_object_keeps_the_contract(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert hits(capfd, "torque", "sensor") == ["a.md", "b.md"]
    assert hits(capfd, "torque sensor", "--explain") == ["a.md", "b.md"]
    assert hits(capfd, "--top-k", "1", "torque sensor") == ["a.md"]


@pytest.mark.spec("C3")
def test_the_query_from_standard_input(
    corpus: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\ufeffgripper\n".encode())))
    assert hits(capfd, "-") == ["b.md"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9")))
    assert main(["query", "-"]) == 2
    assert "not UTF-8" in capfd.readouterr().err


@pytest.mark.spec("C2")
def test_into_a_pipe_goes_plain_text_and_the_summary_to_standard_error(
    corpus: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "sensor", "-v"]) == 0
    out, err = capfd.readouterr()
    first, *rest = out.splitlines()
    assert first.startswith("1. a.md:1-3  bm25 ")
    assert rest == ["    # Reset", "", "    Reset the torque sensor."]
    assert err.splitlines()[0].startswith("1 hit (keyword, ")
    assert err.splitlines()[1].startswith("bm25: ")
    assert main(["query", "sensor", "--quiet"]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.spec("C9")
def test_fail_empty_is_exit_code_1(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "absent"]) == 0
    assert main(["query", "absent", "--fail-empty"]) == 1
    assert main(["query", "torque", "--fail-empty"]) == 0


@pytest.mark.spec("R9", "R10", "C9")
def test_conditions(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert hits(capfd, "torque", "--filter", "path=b*") == ["b.md"]
    assert hits(capfd, "torque", "--where", 'document_id == "a.md"') == ["a.md"]
    assert main(["query", "torque", "--where", "score >"]) == 2
    assert main(["query", "torque", "--filter", "lang"]) == 2
    assert capfd.readouterr().out == ""


def test_what_a_condition_dropped_is_told(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "torque", "--where", 'document_id == "a.md"', "--explain"]) == 0
    out, err = capfd.readouterr()
    assert "dropped: 1\n    b.md#0  where: " in out
    assert err.startswith("1 hit, 1 dropped")


@pytest.mark.spec("C12")
def test_a_hit_whose_file_changed_says_so(corpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (corpus / "a.md").write_text("something else, and longer than before", encoding="utf-8")
    (corpus / "b.md").unlink()
    capfd.readouterr()
    assert main(["query", "torque"]) == 0
    shown = {line.split()[1]: line for line in capfd.readouterr().out.splitlines() if line[:1].isdigit()}
    assert shown["a.md:1-3"].endswith("[changed since ingest]")
    assert shown["b.md:1"].endswith("[missing since ingest]")


@pytest.mark.spec("C3")
def test_a_batch_from_standard_input_and_a_reader_that_leaves(corpus: Path) -> None:
    queries = b"torque\n" * 2000
    command = [sys.executable, "-m", "ragcli", "query", "--batch", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=corpus
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(queries)
        process.stdin.close()
        first = json.loads(process.stdout.readline())
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (0, b"")
    assert (first["_id"], len(first["hits"])) == ("1", 2)


@pytest.mark.spec("C3")
def test_a_batch_answers_each_line_before_the_next_is_written(corpus: Path) -> None:
    command = [sys.executable, "-m", "ragcli", "query", "--batch", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=corpus) as process:
        assert process.stdin and process.stdout
        for query, found in ((b"gripper\n", "b.md"), (b"sensor\n", "a.md")):
            process.stdin.write(query)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["hits"][0]["document_id"] == found
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.spec("C8")
def test_explain_shows_arms_and_parts_then_stages_then_what_was_dropped(
    corpus: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert main(["query", "torque", "sensor", "--where", 'document_id == "a.md"', "--explain"]) == 0
    lines = capfd.readouterr().out.splitlines()
    explained = lines[lines.index("    Reset the torque sensor.") + 1 :]
    starts = (
        *("    = bm25 rank 1 score ", "    = bm25 ", "    a.md#0: rank 1", "", "stages:", "    bm25: 2 in, 2 out, "),
        *("    where: 2 in, 1 out, ", "    cut: 1 in, 1 out, ", "dropped: 1", "    b.md#0  where: "),
    )
    assert all(line.startswith(start) for line, start in zip(explained, starts, strict=True)), explained
    score, *terms = map(float, re.findall(r"\d+\.\d{4}", explained[1]))
    assert len(terms) == 2
    assert sum(terms) == pytest.approx(score, abs=1.5e-4)  # each is rounded to four digits


@pytest.mark.spec("C2", "I33")
def test_what_is_marked_is_what_the_index_was_built_to_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "a.md").write_text("The pump runs at night.", encoding="utf-8")
    (tmp_path / "english.yaml").write_text("analyzer:\n  stemmer: english\n", encoding="utf-8")
    assert main(["ingest", "a.md", "--config", "english.yaml", "-q"]) == 0
    monkeypatch.setattr(streams, "output_is_terminal", lambda: True)
    capfd.readouterr()
    assert main(["query", "running"]) == 0  # the settings in force say no stemmer; the index has its own
    assert "\x1b[1;33mruns\x1b[0m" in capfd.readouterr().out
