"""E11: four readers that search by meaning while an ingest embeds: none is refused, and none sees half a state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragcli.options import ModelsSettings, Settings
from tests import indexes
from tests.models import toy_bert

READER = """
import sys
from pathlib import Path
from ragcli import Pipeline, RetrievalOptions
found = 0
while not Path(sys.argv[2]).exists():
    with Pipeline.open(Path(sys.argv[1])) as pipeline:
        result = pipeline.retrieve("one two", RetrievalOptions(mode="vector", top_k=50, min_score=-1.0))
    names = [(hit.chunk.document_id, hit.chunk.index) for hit in result.ranking.hits]
    assert len(names) == len(set(names)) == min(50, len(names)) >= 5, names
    scores = [hit.score for hit in result.ranking.hits]
    assert scores == sorted(scores, reverse=True)
    found += 1
print(found)
"""


@pytest.mark.spec("I35", "R41")
def test_readers_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "models"))
    settings = Settings(models=ModelsSettings(embedder=str(toy_bert.write_folder(tmp_path / "toy"))))
    words = ("one", "two", "three", "four", "five", "a", "b")
    docs, index, done = tmp_path / "docs", tmp_path / "i.db", tmp_path / "done"
    indexes.write(docs, {f"first/{n}.txt": f"{words[n]} x{n}" for n in range(5)})
    indexes.take_in(index, docs, settings=settings)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(index), str(done)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for part in range(8):
        indexes.write(docs, {f"{part}/{n}.txt": f"{words[n % 7]} {words[part % 7]} y{n}" for n in range(80)})
        assert indexes.take_in(index, docs, settings=settings).unembedded == 0
    done.touch()
    for reader in readers:
        said, complaints = reader.communicate(timeout=60)
        assert reader.returncode == 0, complaints
        assert int(said) > 0
    assert indexes.faults(index) == []
