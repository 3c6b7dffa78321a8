"""B04: how is a document removed, read again, kept up to date?

`ingest --delete ID` removes. `ingest PATH` reads again what is new or changed and nothing else, so running it before a
query is the way to be up to date; until then a hit of an edited file says that it is stale.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I34")
def test_a_document_is_removed_and_can_come_back(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": "gauge one\n", "b.md": "gauge two\n"})
    shell("ingest", "d")
    told = shell("ingest", "--delete", "a.md")
    assert (told.code, "removed 1" in told.err) == (0, True)
    assert [hit["document_id"] for hit in shell.hits("gauge")] == ["b.md"]
    told = shell("ingest", "--delete", "a.md")
    assert told.code == 2
    assert told.err.startswith("error: no document 'a.md' in the index; did you mean b.md?")
    assert "added 1, changed 0, unchanged 1, removed 0" in shell("ingest", "d").err
    assert {hit["document_id"] for hit in shell.hits("gauge")} == {"a.md", "b.md"}


@pytest.mark.spec("I34", "C12")
def test_an_edited_file_is_stale_until_it_is_read_again(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", {"a.md": "the old gauge\n", "b.md": "a pump\n"})
    shell("ingest", "d")
    (docs / "a.md").write_text("the new, digital gauge\n", encoding="utf-8")
    assert [(hit["text"], hit["stale"]) for hit in shell.hits("gauge")] == [("the old gauge", "changed")]
    assert "a.md:1" in shell("query", "gauge").out
    assert "[changed since ingest]" in shell("query", "gauge").out
    assert "added 0, changed 1, unchanged 1, removed 0" in shell("ingest", "d").err
    assert [(hit["text"], hit["stale"]) for hit in shell.hits("gauge")] == [("the new, digital gauge", None)]
    assert shell.hits("old") == []
