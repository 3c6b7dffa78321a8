"""A14: names that differ only in a space or underscore evicted each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I6")
def test_three_documents(shell: Shell, tmp_path: Path) -> None:
    names = ["a b.md", "a_b.md", "a-b.md"]
    docs = indexes.write(tmp_path / "d", {name: f"word{n}\n" for n, name in enumerate(names)})
    assert shell("ingest", "d").code == 0
    for n, name in enumerate(names):
        (hit,) = shell.hits(f"word{n}")
        assert hit["document_id"] == name
        assert Path(hit["path"]) == docs / name
        assert Path(hit["path"]).read_text() == hit["text"] + "\n"
