"""G11: a query by keywords loads no model, and a batch loads it once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService

LOADED = (
    "import sys\nfrom ragcli.cli import main\ncode = main({!r})\nprint(*sys.modules, file=sys.stderr)\nsys.exit(code)"
)


@pytest.mark.spec("C6", "R3")
@pytest.mark.parametrize("asked", [["--mode", "keyword"], ["--weights", "dense=0,bm25=1"]])
def test_no_model_is_loaded_where_no_vector_is_compared(
    shell: Shell, service: EmbeddingService, tmp_path: Path, asked: list[str]
) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak"})
    assert shell("ingest", "docs").code == 0
    service.requests.clear()
    script = LOADED.format(["query", "oak", "--json", *asked])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert not loaded & {"numpy", "onnxruntime", "tokenizers", "httpx2", "ragcli.models.embedder"}
    assert '"dense"' not in done.stdout
    assert service.requests == []


@pytest.mark.spec("C3")
def test_a_batch_opens_its_model_once(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    indexes.write(tmp_path, {"docs/a.txt": "an oak", "queries.txt": "oak\nelm\nash\n"})
    assert shell("ingest", "docs").code == 0
    service.requests.clear()
    assert shell("query", "--batch", "queries.txt").code == 0
    assert [request.texts for request in service.requests] == [["oak"], ["elm"], ["ash"]]
