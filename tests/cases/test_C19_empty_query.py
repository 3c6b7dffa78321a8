"""C19: an empty pattern matched everything; emoji gave random code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from ragcli.cli import main


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("torque sensor", encoding="utf-8")
    assert main(["ingest", str(tmp_path / "a.md"), "--index", str(tmp_path / "i.db"), "-q"]) == 0
    return tmp_path / "i.db"


@pytest.mark.spec("C9")
@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_query_is_a_usage_error(text: str, index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["query", text, "--index", str(index)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: the query is empty\n")


def test_an_empty_standard_input_too(
    index: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
    assert main(["query", "-", "--index", str(index)]) == 2


@pytest.mark.spec("C11")
@pytest.mark.parametrize("text", ["🎉🦀✨", "!?", "…"])
def test_a_query_without_letters_or_digits_finds_nothing_and_says_why(
    text: str, index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", text, "--index", str(index), "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["hits"] == []
    assert "note: the query has no terms" in err
