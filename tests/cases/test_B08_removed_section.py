"""B08: a section that was taken out of a file could still be found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes


@pytest.mark.spec("I34")
def test_its_terms_match_no_more(tmp_path: Path) -> None:
    text = "# One\n\nfirst unicorn\n\n# Two\n\nsecond walrus\n"
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.md": text})
    indexes.take_in(index, docs)
    assert indexes.found(index, "walrus") == {"a.md"}
    indexes.write(docs, {"a.md": text[: text.index("# Two")]})
    indexes.take_in(index, docs)
    assert indexes.found(index, "walrus") == set()
    assert indexes.found(index, "unicorn") == {"a.md"}
    assert indexes.rows(index, "SELECT count(*) FROM terms WHERE term = 'walrus'") == [(0,)]
    assert indexes.faults(index) == []
