"""The check finds what is wrong, and nothing where nothing is (spec I35)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragcli.options import EmbeddingSettings, ModelsSettings, Settings
from tests import indexes
from tests.services import EmbeddingService

FAULTS = {
    "UPDATE meta SET value = value + 1 WHERE key = 'chunk_count'": "chunk_count says 4, counted 3",
    "UPDATE meta SET value = value - 1 WHERE key = 'term_count'": "term_count says",
    "DELETE FROM documents WHERE document_id = 'b.md'": "chunks of no document",
    "UPDATE documents SET source = 99 WHERE document_id = 'b.md'": "1 documents of no source",
    "DELETE FROM chunks WHERE id = (SELECT max(id) FROM chunks)": "has 0 chunks in place, not 1",
    "UPDATE chunks SET \"end\" = 9999 WHERE \"end\" > 3": "is no span of its text",
    "UPDATE chunks SET start = start + 1, length = length WHERE \"index\" = 0": "text before chunk 0 is in no chunk",
    "UPDATE chunks SET length = length + 1": "chunk 0 has not",
    "UPDATE text_blocks SET text = text || 'more'": "characters of text, not",
    "DELETE FROM text_blocks": "has 0 characters of text",
    "DELETE FROM metadata": "its metadata can't be found by filters",
    "UPDATE meta SET value = 1 WHERE key = 'next_document'": "documents whose id is to be given again",
}  # fmt: skip


@pytest.fixture
def index(tmp_path: Path) -> Path:
    docs = {"a.md": "---\ntags: [x, y]\n---\n# Alpha\nhello world\n", "b.md": "bye\n", "c.md": "# C\n\nmore of it\n"}
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "docs", docs))
    return tmp_path / "i.db"


@pytest.mark.spec("I35")
def test_a_sound_index_has_no_fault(index: Path) -> None:
    assert indexes.faults(index) == []


@pytest.mark.spec("I35")
@pytest.mark.parametrize("statement", FAULTS)
def test_each_kind_of_fault_is_found(index: Path, statement: str) -> None:
    with closing(sqlite3.connect(index)) as db:
        assert db.execute(statement).rowcount > 0
        db.commit()
    assert any(FAULTS[statement] in fault for fault in indexes.faults(index))


@pytest.mark.spec("I35")
def test_a_vector_of_another_text_is_found(tmp_path: Path) -> None:
    docs = {"a.md": "# Alpha\n\nhello world\n\n## Beta\n\nmore of it\n", "b.md": "bye\n", "c.md": "# C\n\nlast\n"}
    indexes.write(tmp_path / "docs", docs)
    with EmbeddingService() as service:
        models, endpoint = ModelsSettings(embedder="openai:toy"), EmbeddingSettings(base_url=service.url, api_key="k")
        indexes.take_in(tmp_path / "i.db", tmp_path / "docs", settings=Settings(models=models, embedding=endpoint))
    assert indexes.faults(tmp_path / "i.db") == []
    with closing(sqlite3.connect(tmp_path / "i.db")) as db:
        chunk, name, index = db.execute(
            'SELECT c.id, document_id, "index" FROM vectors v JOIN chunks c ON c.id = v.chunk '
            "JOIN documents d ON d.id = c.document ORDER BY c.id DESC"
        ).fetchone()
        db.execute("UPDATE vectors SET hash = zeroblob(16) WHERE chunk = ?", (chunk,))
        db.commit()
    assert indexes.faults(tmp_path / "i.db") == [f"{name}: the vector of chunk {index} is of another text"]
