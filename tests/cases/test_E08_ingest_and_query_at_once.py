"""E08, E11: SQLITE_BUSY when one process writes and others read. Nobody sees an error."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import crash

SECONDS = 5.0

READ = """
import sys, time
from contextlib import closing
from pathlib import Path
from ragcli.options import Bm25Settings, Settings
from ragcli.store.sqlite.store import SqliteStore
end, number = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    with closing(SqliteStore.open(Path(sys.argv[1]), Settings())) as store, store.snapshot():
        hits = store.keyword(["oak7", "elm3"], 10, Bm25Settings(), ())
        assert len(store.fetch([hit.chunk for hit in hits])) == len(hits) > 0
    number += 1
print(number)
"""

WRITE = """
import sys, time
from pathlib import Path
from tests import crash, indexes
end, number = time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end:
    number += 1
    for path in sorted(Path(sys.argv[2], "notes").iterdir())[number % 3 :: 3]:
        path.write_text(path.read_text() + f"oak7 elm3 edit{number}")
    indexes.take_in(Path(sys.argv[1]), sys.argv[2])
print(number)
"""


@pytest.mark.spec("I35")
def test_no_errors(tmp_path: Path) -> None:
    from tests import indexes

    index, corpus = tmp_path / "i.db", tmp_path / "d"
    crash.make_corpus(corpus, 8, files=20, records=50)
    indexes.take_in(index, corpus)
    root = Path(__file__).resolve().parents[2]
    commands = [[WRITE, str(index), str(corpus), str(SECONDS)], *[[READ, str(index), str(SECONDS)]] * 4]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
        )
        for command in commands
    ]
    began = time.monotonic()
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert int(out) > 0
    assert time.monotonic() - began >= SECONDS
    assert indexes.faults(index) == []
