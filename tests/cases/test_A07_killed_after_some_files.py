"""A07: a crash half-way meant starting over. A rerun does only what is missing."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests import crash, indexes


@pytest.mark.spec("I34", "I35")
def test_the_rerun_does_only_the_rest(tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "docs", {f"{n:02}.md": f"number{n} " * 400 for n in range(50)})
    for path in docs.iterdir():
        os.utime(path, (time.time() - 60,) * 2)
    index = tmp_path / "i.db"
    process = crash.start(index, docs)
    assert process.stdout
    reported = 0
    while reported < 20:
        line = process.stdout.readline().strip()
        reported = int(line) if line.isdigit() else reported
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = len(indexes.ids(index))
    assert done >= 20
    report = indexes.take_in(index, docs)
    assert (report.unchanged, report.added) == (done, 50 - done)
    assert indexes.faults(index) == []
    assert indexes.found(index, f"number{random.Random(1).randrange(50)}") != set()
