"""A37: the rerun after an interrupted batch failed. It completes the index."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import crash, indexes


@pytest.mark.spec("I35")
def test_rerun_after_a_kill_between_batches(tmp_path: Path) -> None:
    corpus, index = tmp_path / "corpus", tmp_path / "i.db"
    crash.make_corpus(corpus, 37)
    process = crash.start(index, corpus)
    assert process.stdout
    assert process.stdout.readline() == "begin\n"
    assert int(process.stdout.readline()) > 0  # the first batch is committed
    process.send_signal(signal.SIGKILL)
    process.communicate()
    indexes.take_in(index, corpus)
    indexes.take_in(tmp_path / "fresh.db", corpus)
    indexes.same(index, tmp_path / "fresh.db", ["oak7", "note"])
