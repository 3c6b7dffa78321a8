"""A25: an editor's temporary file that is gone before it is read is passed over quietly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcli.ingest import run
from ragcli.types import Source
from tests import indexes


@pytest.mark.spec("I5")
def test_a_file_that_is_gone_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = indexes.write(tmp_path / "d", {"x.py": "x = 1\n", "x.py.tmp.85892.1764": "x = 2\n"})
    real = run._walk

    def walk(*arguments: object) -> Iterator[Source]:
        for source in real(*arguments):  # type: ignore[arg-type]
            if ".tmp." in source.relative:
                Path(source.location).unlink()
            yield source

    monkeypatch.setattr(run, "_walk", walk)
    report = indexes.take_in(tmp_path / "i.db", docs)
    assert (report.added, report.failed, report.skipped) == (1, (), ())
    assert indexes.rows(tmp_path / "i.db", "SELECT relative FROM sources") == [("x.py",)]
