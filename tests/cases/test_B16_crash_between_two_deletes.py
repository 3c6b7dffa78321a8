"""B16: a crash between two DELETEs left half a document behind. It is one transaction."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ragcli.store.sqlite import documents, postings
from tests import indexes


@pytest.mark.spec("I35")
@pytest.mark.parametrize("step", ["postings", "rows"])
def test_a_delete_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {f"{n}.md": f"word{n}\n" for n in range(3)})
    indexes.take_in(index, docs)
    before = indexes.content(index)
    where, name = (postings, "delete") if step == "postings" else (documents.Batch, "_delete_rows")
    real = getattr(where, name)

    def fail(*arguments: object) -> None:
        real(*arguments)
        raise sqlite3.OperationalError("the power went")

    for path in docs.iterdir():
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(where, name, fail)
        with pytest.raises(Exception, match="the power went"):
            indexes.take_in(index, docs, prune=True)
    assert indexes.content(index) == before
    assert indexes.faults(index) == []
    assert indexes.take_in(index, docs, prune=True).removed == 3
    assert indexes.faults(index) == []
