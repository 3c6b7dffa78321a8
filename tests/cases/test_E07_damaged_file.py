"""E07: a damaged file. Commands say so in a line, with how to rebuild; the check finds it; the code is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


def damage_end(index: Path) -> None:
    data = index.read_bytes()
    index.write_bytes(data[: len(data) * 6 // 10])


def damage_start(index: Path) -> None:
    data = bytearray(index.read_bytes())
    for at in range(20, 4000, 7):
        data[at] ^= 0xFF
    index.write_bytes(data)


@pytest.mark.spec("C7", "C9", "I35")
@pytest.mark.parametrize("damage", [damage_end, damage_start])
def test_a_line_and_a_way_out(shell: Shell, tmp_path: Path, damage: object) -> None:
    indexes.write(tmp_path / "d", {f"{n}.md": f"number {n} " * 300 for n in range(60)})
    shell("ingest", "d")
    index = indexes.index_of(tmp_path)
    for name in (f"{index}-wal", f"{index}-shm"):
        Path(name).unlink(missing_ok=True)
    damage(index)  # type: ignore[operator]
    assert shell("inspect", "--check").code == 3
    for command in (["query", "number"], ["ingest", "d", "--checksum"]):
        told = shell(*command)
        if told.code == 0:  # what it read was not damaged
            continue
        assert told.code == 3
        assert "Traceback" not in told.err
        lines = [line for line in told.err.splitlines() if line]
        assert len(lines) == 2
        assert "--reset" in lines[1]
    assert shell("ingest", "d", "--reset", "--yes").code == 0
    assert shell("inspect", "--check").code == 0
    assert shell.hits("number")
