"""`ragcli inspect` on a real index, as text and as JSON."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from ragcli.cli import main


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# Reset\n\ntorque torque sensor", encoding="utf-8")
    (tmp_path / "b.md").write_text("gripper", encoding="utf-8")
    assert main(["ingest", "a.md", "b.md", "-q"]) == 0
    return tmp_path / ".ragcli" / "index.db"


def shown(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert main(["inspect", *arguments, "--json"]) == 0
    value: dict[str, Any] = json.loads(capfd.readouterr().out)
    return value


@pytest.mark.spec("A11")
def test_stats_are_the_default(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    value = shown(capfd)
    assert (value["documents"], value["chunks"], value["path"]) == (2, 2, str(index))
    assert shown(capfd, "--stats") == value


@pytest.mark.spec("A11")
def test_document_and_chunk(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = shown(capfd, "--document", "a.md")
    assert document["text"] == "# Reset\n\ntorque torque sensor"
    chunk = shown(capfd, "--chunk", "a.md#0")
    assert chunk["terms"]["torque"] == 2
    assert (chunk["previous"], chunk["next"]) == (None, None)


@pytest.mark.spec("A11", "I32")
def test_terms(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    value = shown(capfd, "--terms", "Torque")
    (term,) = value["terms"]
    assert (term["term"], term["document_frequency"], term["postings"]) == ("torque", 1, [["a.md#0", 2]])
    assert term["idf"] == pytest.approx(math.log(1 + (2 - 1 + 0.5) / (1 + 0.5)))


@pytest.mark.spec("A11", "I35")
def test_check(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, "--check")["ok"] is True


@pytest.mark.spec("A11", "C4")
def test_config_shows_every_setting_and_where_it_came_from(
    index: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (index.parent.parent / "c.yaml").write_text("retrieval:\n  top_k: 7\n", encoding="utf-8")
    monkeypatch.setenv("RAGCLI_BM25__K1", "1.2")
    for arguments in (["--config", "c.yaml"], ["--config=c.yaml"]):
        rows = {row["key"]: row for row in shown(capfd, *arguments)["settings"]}
        assert (rows["retrieval.top_k"]["value"], rows["retrieval.top_k"]["origin"]) == (7, "c.yaml:2")
        assert rows["bm25.k1"]["origin"] == "environment RAGCLI_BM25__K1"
        assert rows["bm25.b"]["origin"] == "default"
    capfd.readouterr()
    assert main(["inspect", "--config"]) == 0
    assert "retrieval.top_k" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://me:pa55word@host:8080/v1", "http://host:8080/v1"),
        ("https://me:pa55@word@host/v1?key=pa55word#pa55word", "https://host/v1"),
        ("http://host/v1?mail=me@pa55word", "http://host/v1"),
        ("http://me:pa55/word@host/v1", "(hidden)"),
        ("http://me:pa55?word@host/v1", "(hidden)"),
        ("me:pa55word@host/v1", "(hidden)"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_config_shows_a_url_without_its_secrets(
    index: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, url: str, bare: str
) -> None:
    monkeypatch.setenv("RAGCLI_EMBEDDING__BASE_URL", url)
    rows = {row["key"]: row["value"] for row in shown(capfd, "--config")["settings"]}
    assert rows["embedding.base_url"] == bare
    assert main(["inspect", "--config"]) == 0
    out = capfd.readouterr().out
    assert bare in out
    assert "pa55" not in out


@pytest.mark.spec("C9")
def test_without_an_index_the_code_is_3(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (["inspect"], ["query", "x"], ["query", "x", "--json"]):
        assert main([*arguments, "--index", str(tmp_path / "none.db")]) == 3
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: ")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.spec("A11", "I32")
def test_a_term_that_nobody_has(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (term,) = shown(capfd, "--terms", "absent")["terms"]
    assert (term["document_frequency"], term["total"], term["postings"]) == (0, 0, [])
    assert term["idf"] == pytest.approx(math.log(1 + (2 + 0.5) / 0.5))


@pytest.mark.spec("A11")
def test_total_counts_every_occurrence_that_is_still_there(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = index.parent.parent
    for number in range(30):
        (folder / f"c{number:02}.md").write_text("torque " * (number + 1), encoding="utf-8")
    main(["ingest", *(f"c{number:02}.md" for number in range(30)), "-q"])
    main(["ingest", "--delete", "c29.md", "-q"])
    (term,) = shown(capfd, "--terms", "torque")["terms"]
    assert (term["document_frequency"], term["total"]) == (30, 2 + sum(range(1, 30)))  # a.md has two
    assert len(term["postings"]) == 20
    capfd.readouterr()
    main(["inspect", "--terms", "torque"])
    out = capfd.readouterr().out
    assert "occurrences         437\n" in out
    assert out.endswith("  and 10 more\n")


@pytest.mark.spec("A11")
def test_all_documents_in_a_list(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, "--documents")["documents"] == [
        {"id": "a.md", "format": "markdown", "chunks": 1, "title": "Reset"},
        {"id": "b.md", "format": "markdown", "chunks": 1, "title": ""},
    ]
    assert main(["inspect", "--documents"]) == 0
    assert capfd.readouterr().out == "a.md  markdown  1 chunk  Reset\nb.md  markdown  1 chunk\n"


@pytest.mark.spec("C7")
def test_an_unknown_document_brings_the_nearest_or_the_way_to_the_list(
    index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = index.parent.parent
    (folder / "docs").mkdir()
    (folder / "docs" / "leave.md").write_text("leave", encoding="utf-8")
    main(["ingest", str(folder), "-q"])
    for asked, hint in (
        ("docs/laeve.md", "did you mean docs/leave.md?"),
        ("leave.md", "did you mean docs/leave.md?"),
        ("nothing like it", "ragcli inspect --documents lists what there is"),
    ):
        capfd.readouterr()
        assert main(["inspect", "--document", asked]) == 2
        assert capfd.readouterr().err.splitlines()[1] == f"hint: {hint}"


@pytest.mark.spec("A11", "C12", "I1")
def test_what_came_from_standard_input_is_named_by_its_id(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the lamp is red")))
    assert main(["ingest", "-", "--name", "notes/lamp.txt", "-q"]) == 0
    document = shown(capfd, "--document", "notes/lamp.txt")
    assert (document["path"], document["size"], document["stale"]) == ("notes/lamp.txt", None, None)
    assert shown(capfd, "--stats")["roots"] == ["standard input"]
    capfd.readouterr()
    main(["inspect", "--document", "notes/lamp.txt"])
    assert "size      unknown: it came from standard input\n" in capfd.readouterr().out
    main(["query", "lamp", "--json"])
    (hit,) = json.loads(capfd.readouterr().out)["hits"]
    assert (hit["path"], hit["stale"]) == ("notes/lamp.txt", None)
    for name, wanted in (("paths", "notes/lamp.txt\n"), ("table", "1. notes/lamp.txt:1  bm25 ")):
        main(["query", "lamp", "--format", name])
        assert capfd.readouterr().out.startswith(wanted)
    for name in ("md", "csv", "tsv"):
        main(["query", "lamp", "--format", name])
        assert "notes/lamp.txt" in capfd.readouterr().out
