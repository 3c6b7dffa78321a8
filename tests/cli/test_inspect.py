"""`ragcli inspect` on a real index, as text and as JSON."""

from __future__ import annotations

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


@pytest.mark.spec("C9")
def test_without_an_index_the_code_is_3(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (["inspect"], ["query", "x"], ["query", "x", "--json"]):
        assert main([*arguments, "--index", str(tmp_path / "none.db")]) == 3
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: ")
    assert not (tmp_path / "none.db").exists()
