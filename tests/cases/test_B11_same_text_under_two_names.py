"""B11: text is embedded once however many documents hold it, and however a file is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.mark.spec("I34")
def test_equal_text_is_embedded_once(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    records = "".join(f'{{"_id": "{name}", "text": "an oak in the wind"}}\n' for name in "ab")
    indexes.write(tmp_path, {"records.jsonl": records})
    report = shell("ingest", "records.jsonl", "--json").json()
    assert (report["embedded"], report["reused"]) == (1, 1)
    assert service.texts.count("an oak in the wind") == 1
    assert {hit["document_id"] for hit in shell.hits("oak")} == {"a", "b"}

    service.requests.clear()
    indexes.write(tmp_path, {"more.jsonl": '{"_id": "c", "text": "an oak in the wind"}\n'})
    assert shell("ingest", "more.jsonl", "--json").json()["reused"] == 1
    assert service.texts == []


@pytest.mark.spec("I34")
@pytest.mark.parametrize("prune", [["--prune"], []])
def test_a_file_that_moved_is_not_embedded_again(
    shell: Shell, service: EmbeddingService, tmp_path: Path, prune: list[str]
) -> None:
    docs = indexes.write(tmp_path / "docs", {"old/a.txt": "an oak", "b.txt": "an elm"})
    shell("ingest", "docs")
    service.requests.clear()
    (docs / "new").mkdir()
    (docs / "old" / "a.txt").rename(docs / "new" / "a.txt")
    report = shell("ingest", "docs", *prune, "--json").json()
    assert (report["added"], report["embedded"], report["reused"]) == (1, 0, 1)
    assert service.texts == []
