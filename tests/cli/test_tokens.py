"""Chunks counted in tokens, from the command line: the tokenizer's file comes when it is first needed (spec I20)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragcli.cli import main

if TYPE_CHECKING:
    from ragcli.chunk.measure import TokenizerSource

TEXT = " ".join(f"Sensor {number} of the gauge is checked twice a year." for number in range(60))


@pytest.fixture
def disk(tokenizer: TokenizerSource, tmp_path: Path) -> Path:
    """A folder with the tokenizer's file in it."""
    path: Path = tokenizer.args[0]  # type: ignore[attr-defined]  # a partial of tokens.load
    return Path(shutil.copytree(path.parent, tmp_path / "disk" / "cl100k_base")).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A document, and no model here yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "models"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def ingested(*arguments: str) -> int:
    return main(["ingest", "a.txt", *arguments, "--chunk-size", "50", "--chunk-overlap", "0"])


@pytest.mark.spec("I20")
@pytest.mark.parametrize("by", ["strategy", "unit"])
def test_the_file_comes_once_and_no_chunk_has_more_tokens_than_asked_for(
    folder: Path, disk: Path, tokenizer: TokenizerSource, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str], by: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("RAGCLI_MODELS__FOLDER", str(disk))
    if by == "unit":
        monkeypatch.setenv("RAGCLI_CHUNKING__UNIT", "tokens")
    how = ["--chunk-strategy", "token"] if by == "strategy" else []
    assert ingested(*how) == 0
    first, second, *_ = capfd.readouterr().err.splitlines()
    assert first == f"note: fetching cl100k_base (tokenizer, 1.7 MB) into {folder / 'models' / 'cl100k_base'}"
    assert second.startswith("added 1, ")
    assert main(["inspect", "--document", "a.txt", "--json"]) == 0
    chunks = json.loads(capfd.readouterr().out)["chunks"]
    count = tokenizer().count
    sizes = [count(chunk["text"]) for chunk in chunks]
    assert max(sizes) <= 50
    assert sum(sizes[:-1]) / len(sizes[:-1]) > 35
    shutil.rmtree(disk)
    monkeypatch.setenv("RAGCLI_OFFLINE", "1")
    assert ingested(*how, "--reset", "--yes") == 0


@pytest.mark.spec("I20", "C7")
def test_offline_it_is_one_line_and_nothing_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGCLI_OFFLINE", "1")
    assert ingested("--chunk-strategy", "token") == 1
    error, hint = capfd.readouterr().err.splitlines()
    assert error == f"error: model cl100k_base is not in {folder / 'models' / 'cl100k_base'}, and offline is on"
    assert hint.startswith("hint: with a network: ragcli models pull cl100k_base")
    assert not (folder / ".ragcli").exists() or not list((folder / ".ragcli").glob("*.db"))


@pytest.mark.spec("I20")
def test_counting_characters_asks_for_no_tokenizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCLI_OFFLINE", "1")
    assert ingested() == 0
    with sqlite3.connect(folder / ".ragcli" / "index.db") as db:
        assert db.execute("SELECT count(*) > 1 FROM chunks").fetchone() == (1,)
    db.close()
