"""A08 (zylon-ai/private-gpt #989): a 5 MB single line without spaces must not stall the run."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from ragcli.ingest import run
from ragcli.options import ChunkingSettings, IngestSettings
from tests import indexes
from tests.chunk.strategies import CHARACTER_STRATEGIES, document


@pytest.mark.spec("I21")
@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
def test_A08_a_line_of_five_megabytes_is_cut_in_bounded_time(strategy: Any) -> None:
    text = "x" * 5_000_000
    start = perf_counter()
    spans = strategy(1600, 160)(document(text))
    assert perf_counter() - start < 10  # 0.2 s where it was written
    assert spans[0] == (0, 1600)
    assert spans[-1][1] == 5_000_000
    assert len(spans) == 3473  # 1600 characters, then 1440 new ones a chunk: 1 + ceil((5e6 - 1600) / 1440)


@pytest.mark.spec("C5")
@pytest.mark.parametrize("cores", [1, 2])
def test_A08_the_slow_file_is_named_while_it_takes_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    docs = indexes.write(tmp_path / "docs", {"a.txt": "quick", "b-slow.txt": "slow " * 20, "c.txt": "quick too"})
    monkeypatch.setattr(run, "BATCH_FILES", 1)
    settings = indexes.keywords(
        ingest=IngestSettings(workers=cores), chunking=ChunkingSettings(strategy="tests.ingest_slow:Slow")
    )
    told: list[tuple[str, float]] = []
    run.ingest_paths(
        [str(docs)], settings, tmp_path / "i.db", listen=lambda event: told.append((event.detail, perf_counter()))
    )
    named = [at for detail, at in told if detail == "b-slow.txt"]
    assert named[-1] - named[0] > 0.4  # named before it is done, which it is 1.5 s after it was begun
