"""G17: global options had to stand before the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragcli.cli import main


@pytest.mark.spec("C1", "C4")
def test_global_options_stand_before_or_after_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("torque\n\n" * 9, encoding="utf-8")
    (tmp_path / "c.yaml").write_text("retrieval:\n  top_k: 1\n", encoding="utf-8")
    index = ["--index", str(tmp_path / "i.db")]
    config = ["--config", str(tmp_path / "c.yaml")]
    chunks = ["--chunk-size", "20", "--chunk-overlap", "0"]
    assert main([*index, "-q", "ingest", str(tmp_path / "a.md"), *chunks]) == 0

    def hits(*arguments: str) -> int:
        capfd.readouterr()
        assert main(list(arguments)) == 0
        return len(json.loads(capfd.readouterr().out)["hits"])

    assert hits(*index, "query", "torque", "--json") > 1
    assert hits(*index, *config, "query", "torque", "--json") == 1
    assert hits(*index, "query", "torque", "--json", *config) == 1
    assert hits("query", *index, *config, "torque", "--json") == 1
    assert hits("--index", "/nowhere/i.db", *config, "query", "torque", "--json", *index) == 1
    capfd.readouterr()
    for arguments in (["--quiet", "query", "torque", *index], ["query", "torque", *index, "--quiet"]):
        assert main(arguments) == 0
        assert capfd.readouterr().err == ""
