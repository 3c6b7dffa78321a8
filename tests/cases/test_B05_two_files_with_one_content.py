"""B05: of two files with the same content the removed one stayed for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes


@pytest.mark.spec("I34")
@pytest.mark.parametrize(("removed", "left"), [("a.md", "b.md"), ("b.md", "a.md")])
def test_the_other_one_is_left(tmp_path: Path, removed: str, left: str) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.md": "the same\n", "b.md": "the same\n"})
    indexes.take_in(index, docs)
    (docs / removed).unlink()
    assert indexes.take_in(index, docs, prune=True).removed == 1
    assert indexes.found(index, "same") == {left}
    assert indexes.faults(index) == []
