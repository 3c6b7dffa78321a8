"""A23: a sync that stored nothing called itself complete. A run in which every file fails is a failure that says so.

There is no embedder that could refuse; what fails here is each file. Where some went in, the code is 4 (partly done);
where none did, nothing is partly done: it is 1.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell

CUT_SHORT = b"%PDF-1.4 cut"


@pytest.mark.spec("I5", "C9")
def test_a_run_that_takes_nothing_in_fails_and_counts_the_failures(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", {"a.pdf": CUT_SHORT, "b.pdf": CUT_SHORT})
    for _ in range(2):  # a failure is tried again, never taken for done
        told = shell("ingest", "d")
        assert (told.code, told.out) == (1, "")
        assert "added 0, changed 0, unchanged 0, removed 0; 2 failed (2 malformed); 0 chunks in" in told.err
        assert all(f"warning: {docs / name}: " in told.err for name in ("a.pdf", "b.pdf"))
    report = shell("ingest", "d", "--json").json()
    assert (report["added"], report["chunks"], len(report["failed"])) == (0, 0, 2)


@pytest.mark.spec("I5", "C9")
def test_a_run_that_takes_something_in_is_partly_done(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.pdf": CUT_SHORT, "b.md": "good\n"})
    told = shell("ingest", "d")
    assert told.code == 4
    assert "added 1, changed 0, unchanged 0, removed 0; 1 failed (1 malformed); " in told.err
    assert shell("ingest", "d").code == 4  # what is in already is not forgotten for the one that still fails
