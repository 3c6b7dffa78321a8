"""B13: what a second ingest does was a surprise. --help says it, --dry-run lists it file by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I34")
def test_help_states_the_rule(shell: Shell) -> None:
    words = " ".join(shell("ingest", "--help").out.split())
    assert "an unchanged file costs nothing, a changed one is replaced whole" in words


@pytest.mark.spec("I34")
def test_a_dry_run_lists_each_file(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", {"same.md": "x\n", "changed.md": "x\n", "gone.md": "x\n"})
    shell("ingest", "d")
    (docs / "changed.md").write_text("other\n")
    (docs / "gone.md").unlink()
    indexes.write(docs, {"new.md": "x\n"})
    plan = shell("ingest", "d", "--prune", "--dry-run", "--json").json()["plan"]
    assert {Path(path).name: state for state, path in plan} == {
        "same.md": "unchanged", "changed.md": "changed", "gone.md": "removed", "new.md": "new",
    }  # fmt: skip
    report = shell("ingest", "d", "--prune", "--json").json()
    assert [report[name] for name in ("added", "changed", "unchanged", "removed")] == [1, 1, 1, 1]
