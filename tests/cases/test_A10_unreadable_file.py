"""A10: unreadable files were swallowed. They are named with the system's reason, and the exit code says partly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I5", "C9")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", {"secret.md": "x\n", "b.md": "good\n"})
    (docs / "secret.md").chmod(0)
    told = shell("ingest", "d")
    assert told.code == 4
    assert "secret.md" in told.err
    assert "errno 13" in told.err
