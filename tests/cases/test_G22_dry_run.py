"""G22: --dry-run writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


def test_no_index_is_made(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": "alpha\n"})
    assert shell("ingest", "d", "--dry-run").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


@pytest.mark.parametrize("more", [[], ["--prune"], ["--checksum"], ["--reset"], ["--delete", "a.md"], ["--tag", "x=y"]])
def test_an_index_stays_as_it_is(shell: Shell, tmp_path: Path, more: list[str]) -> None:
    docs = indexes.write(tmp_path / "d", {"a.md": "alpha\n", "b.md": "beta\n", "c.md": "gamma\n"})
    shell("ingest", "d")
    index = indexes.index_of(tmp_path)
    before = index.stat().st_mtime_ns, index.read_bytes()
    (docs / "a.md").write_text("changed\n")
    (docs / "b.md").unlink()
    assert shell("ingest", "d", "--dry-run", *more).code == 0
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before
    log = Path(f"{index}-wal")
    assert not log.exists() or log.stat().st_size == 0
