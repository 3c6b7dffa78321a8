"""What `ragcli ingest` says and where it says it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ragcli.cli import main
from ragcli.types import Event


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("torque sensor", encoding="utf-8")
    (tmp_path / "d" / "b.md").write_text("gripper", encoding="utf-8")
    (tmp_path / "d" / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return tmp_path


@pytest.mark.spec("I2", "C2")
def test_the_summary_counts_on_standard_error_and_nothing_is_on_standard_output(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", "d"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("added 2, changed 0, unchanged 0, removed 0; 1 skipped (1 binary); 2 chunks in ")
    assert err.endswith(f"-> {folder / '.ragcli' / 'index.db'}\n")
    (folder / "d" / "a.md").write_text("torque wrench", encoding="utf-8")
    (folder / "d" / "b.md").unlink()
    assert main(["ingest", "d", "--prune"]) == 0
    assert capfd.readouterr().err.startswith("added 0, changed 1, unchanged 0, removed 1; 1 skipped")


@pytest.mark.spec("I2")
def test_verbose_lists_each_skip_with_its_reason(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["-v", "ingest", "d"])
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("skipped ")]
    assert "c.png: PNG" in line


@pytest.mark.spec("I5", "C9")
def test_a_file_that_fails_is_named_and_the_code_is_4(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "d" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    assert main(["ingest", "d", "-q"]) == 4
    err = capfd.readouterr().err
    assert len(err.splitlines()) == 1
    assert "broken.pdf: " in err
    assert main(["query", "torque", "-q"]) == 0


@pytest.mark.spec("C2", "C11")
def test_the_report_as_json(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "d", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["schema"], report["added"], report["chunks"]) == (1, 2, 2)
    assert [problem["kind"] for problem in report["skipped"]] == ["binary"]


@pytest.mark.spec("I34")
def test_a_dry_run_lists_every_file_and_writes_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "d", "--dry-run"]) == 0
    out, err = capfd.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["new", "new", "skipped"]
    assert "dry run, nothing written: files added 2" in err
    assert "rules: hidden files are skipped" in err
    assert not (folder / ".ragcli").exists()
    main(["ingest", "d"])
    (folder / "d" / "a.md").write_text("torque wrench", encoding="utf-8")
    (folder / "d" / "b.md").unlink()
    (folder / "d" / "e.md").write_text("new", encoding="utf-8")
    capfd.readouterr()
    main(["ingest", "d", "--dry-run", "--prune"])
    states = {line.split()[0]: Path(line.split()[1]).name for line in capfd.readouterr().out.splitlines()}
    assert states == {"changed": "a.md", "removed": "b.md", "new": "e.md", "skipped": "c.png"}


@pytest.mark.spec("I36", "C9")
def test_reset_asks_and_where_nobody_can_answer_refuses(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["ingest", "d"])
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["ingest", "d", "--reset"]) == 2
    assert "hint: add --yes" in capfd.readouterr().err
    assert main(["ingest", "d", "--reset", "--yes"]) == 0
    assert capfd.readouterr().err.startswith("added 2, changed 0, unchanged 0")


@pytest.mark.spec("I34")
def test_delete_removes_a_document(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["ingest", "d"])
    assert main(["ingest", "--delete", "a.md"]) == 0
    capfd.readouterr()
    assert main(["query", "torque", "--fail-empty"]) == 1


@pytest.mark.spec("I11", "R9")
def test_tags_are_typed_and_filtered_by(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "d", "--tag", "lang=de", "--tag", "year:=2024", "-q"]) == 0
    for condition, code in (("year:=2024", 0), ("year=2024", 1), ("lang=de", 0), ("lang=en", 1)):
        assert main(["query", "torque", "--filter", condition, "--fail-empty"]) == code, condition


@pytest.mark.spec("C5")
def test_progress_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragcli.cli import progress, streams

    drawn = io.StringIO()
    monkeypatch.setattr("sys.stderr", drawn)
    with progress.shown(quiet=False) as listen:
        listen(Event("reading", 1, 2, "bytes"))
    assert drawn.getvalue() == ""
    monkeypatch.setattr(streams, "messages_are_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown(quiet=True) as listen:
        listen(Event("reading", 1, 2, "bytes"))
    assert drawn.getvalue() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.shown(quiet=False) as listen:
        listen(Event("reading", 1_500_000, 3_000_000, "bytes", "big\x1b[31m.pdf"))
    assert "reading" in drawn.getvalue()
    assert "1.5/3.0 MB" in drawn.getvalue()
    assert "big\\x1b[31m.pdf" in drawn.getvalue()


@pytest.mark.spec("I2", "I34")
def test_a_dry_run_looks_at_the_first_bytes_as_an_ingest_would(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "d" / "tool").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    (folder / "d" / "report.docx").write_bytes(b"PK\x03\x04")
    (folder / "d" / "guess.txt").write_bytes("na\u00efve".encode("utf-16-le"))
    (folder / "d" / "turns.md").write_text("text", encoding="utf-8")
    for _ in range(2):  # into a new index, then into one that knows the files
        main(["ingest", "d", "--dry-run", "--json"])
        forecast = json.loads(capfd.readouterr().out)
        main(["ingest", "d", "--json"])
        report = json.loads(capfd.readouterr().out)
        for counts in ("added", "changed", "unchanged", "removed", "skipped", "failed"):
            assert forecast[counts] == report[counts], counts
        (folder / "d" / "turns.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(10))
    assert {Path(problem["path"]).name for problem in report["skipped"]} == {"c.png", "tool", "report.docx", "turns.md"}


def test_one_chunk_is_told_as_one(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["ingest", "d/a.md"])
    assert "; 1 chunk in " in capfd.readouterr().err
