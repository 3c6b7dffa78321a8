"""G01: `--json` printed "No results found.", which no program can read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ragcli.cli import main


@pytest.mark.spec("C2", "C11")
def test_no_hits_are_valid_output_in_every_format(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("torque", encoding="utf-8")
    index = str(tmp_path / "i.db")
    assert main(["ingest", str(tmp_path / "a.md"), "--index", index, "-q"]) == 0

    def output(*flags: str) -> str:
        capfd.readouterr()
        assert main(["query", "absent", "--index", index, *flags]) == 0
        return capfd.readouterr().out

    assert json.loads(output("--json"))["hits"] == []
    assert output("--jsonl") == ""
    assert len(list(csv.reader(io.StringIO(output("--csv"))))) == 1
    assert output("--md") == "No hits.\n"
    assert output("--format", "tsv").startswith("rank\t")
    for nothing in ("table", "paths", "trec"):
        assert output("--format", nothing) == ""
    main(["query", "absent", "--index", index])
    assert "no hits" in capfd.readouterr().err
