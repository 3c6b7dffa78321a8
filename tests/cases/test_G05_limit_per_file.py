"""G05: JSON, and no more than so many hits of one file, were asked for together."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ragcli.cli import main


@pytest.mark.spec("R1", "C11")
def test_at_most_n_hits_of_one_document(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "long.md").write_text("torque torque torque\n\n" * 300, encoding="utf-8")
    for name in ("b.md", "c.md", "d.md"):
        (tmp_path / name).write_text(f"the torque of {name} " + "and other words " * 20, encoding="utf-8")
    index = str(tmp_path / "i.db")
    files = [str(path) for path in tmp_path.glob("*.md")]
    assert main(["ingest", *files, "--index", index, "--chunk-size", "200", "--chunk-overlap", "0", "-q"]) == 0

    def asked(*flags: str) -> dict[str, list[dict[str, str]]]:
        capfd.readouterr()
        assert main(["query", "torque", "--index", index, "--json", "-k", "4", *flags]) == 0
        value: dict[str, list[dict[str, str]]] = json.loads(capfd.readouterr().out)
        return value

    assert Counter(hit["document_id"] for hit in asked()["hits"]) == {"long.md": 4}
    limited = asked("--per-document", "1")
    assert sorted(hit["document_id"] for hit in limited["hits"]) == ["b.md", "c.md", "d.md", "long.md"]
    reasons = [drop["reason"] for drop in limited["dropped"] if drop["stage"] == "per_document"]
    assert reasons[0] == "hit 2 of long.md; limit 1"
