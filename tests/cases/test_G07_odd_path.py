"""G07: a path with a line end, quotes, a comma and a tab broke every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ragcli.cli import main

NAME = 'a\n"b",c\t.md'


@pytest.mark.spec("C13")
def test_an_odd_path_survives_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).write_text("torque", encoding="utf-8")
    assert main(["ingest", NAME, "-q"]) == 0

    def output(*flags: str) -> str:
        capfd.readouterr()
        assert main(["query", "torque", *flags]) == 0
        return capfd.readouterr().out

    path = str(tmp_path / NAME)
    (found,) = json.loads(output("--json"))["hits"]
    assert (found["path"], found["document_id"]) == (path, NAME)
    header, row = csv.reader(io.StringIO(output("--csv"), newline=""))
    assert dict(zip(header, row, strict=True))["path"] == path
    assert output("--format", "tsv").count("\n") == 2
    assert output("--format", "trec").split()[2] == 'a%0A"b",c%09.md'
    assert output("--format", "paths", "-0") == path + "\0"
    assert output("--format", "paths").count("\n") == 1
    first, *_ = output().splitlines()
    assert first.startswith('1. a\\n"b",c\\t.md:1')
    assert output("--md").startswith('1. `a\\n"b",c\\t.md:1`')
