"""B23: a touched file is unchanged; an edit that keeps size and time is found with --checksum."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ragcli.read import formats
from tests import indexes


@pytest.mark.spec("I34")
def test_touch_reads_no_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.md": "alpha\n", "b.md": "beta\n"})
    indexes.take_in(index, docs)
    for path in docs.iterdir():
        os.utime(path, (1_700_000_000,) * 2)
    monkeypatch.setattr(formats, "read", None)  # any document read would fail
    for _ in range(2):
        report = indexes.take_in(index, docs)
        assert (report.unchanged, report.changed, report.failed) == (2, 0, ())
    assert indexes.rows(index, "SELECT DISTINCT mtime_ns FROM sources") == [(1_700_000_000_000_000_000,)]


@pytest.mark.spec("I34")
def test_an_edit_with_the_same_size_and_time(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.md": "alpha\n", "b.md": "beta\n"})
    then = time.time() - 1000
    os.utime(docs / "a.md", (then, then))
    indexes.take_in(index, docs)
    (docs / "a.md").write_text("omega\n")
    os.utime(docs / "a.md", (then, then))
    assert indexes.take_in(index, docs).unchanged == 2  # size and time are trusted
    report = indexes.take_in(index, docs, checksum=True)
    assert (report.changed, report.unchanged) == (1, 1)
    assert indexes.found(index, "omega") == {"a.md"}
    assert indexes.found(index, "alpha") == set()
