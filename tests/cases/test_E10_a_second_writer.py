"""E10: two writers raced. The second is told whom it waits for; a killed one leaves no lock behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragcli.errors import IndexLocked
from ragcli.ingest import ingest_paths
from tests import indexes

HOLD = """
import sys, time
from ragcli.store.sqlite import lock
with lock.writing(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.spec("I35")
def test_the_holder_is_named_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.md": "alpha\n"})
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(index)], stdout=subprocess.PIPE, text=True, cwd=root)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    with pytest.raises(IndexLocked, match=f"process {process.pid} "):
        ingest_paths([str(docs)], indexes.KEYWORDS, index, wait=0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert ingest_paths([str(docs)], indexes.KEYWORDS, index, wait=0.1).added == 1
