"""What is told while a batch keeps everyone waiting: its largest file (case A08)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcli.ingest import workers
from ragcli.ingest.prepare import Job, Preparation
from ragcli.options import AnalyzerSettings, Bm25Settings, ChunkingSettings
from ragcli.types import Source
from tests import indexes

PREPARATION = Preparation(
    index="", chunking=ChunkingSettings(strategy="tests.ingest_slow:Slow"), analyzer=AnalyzerSettings(),
    bm25=Bm25Settings(), max_file_bytes=2**20, rules={},
)  # fmt: skip


def jobs(folder: Path) -> Iterator[workers.Jobs]:
    """Two batches; the first holds the slow file, which is its largest, and a small one."""
    indexes.write(folder, {"small.txt": "x", "big.txt": "slow " * 50, "last.txt": "y"})
    names = (("small.txt", "big.txt"), ("last.txt",))
    number = iter(range(9))
    for batch in names:
        yield tuple(
            Job(number=next(number), source=Source(root=str(folder), relative=name, location=str(folder / name),
                size=(folder / name).stat().st_size, mtime_ns=0), known=None)
            for name in batch
        )  # fmt: skip


@pytest.mark.spec("C5")
@pytest.mark.parametrize("cores", [1, 2])
def test_the_largest_file_of_the_batch_that_is_waited_for_is_named(tmp_path: Path, cores: int) -> None:
    told: list[str] = []
    found = workers.prepared(
        jobs(tmp_path), PREPARATION, workers=cores, waiting=lambda source: told.append(source.relative)
    )
    assert [part.number for result in found for part in result.parts] == [0, 1, 2]
    assert told[0] == "big.txt"
    if cores == 1:
        assert told == ["big.txt", "last.txt"]
    else:
        assert told.count("big.txt") >= 2  # every half second of 1.5, and the start of the workers
