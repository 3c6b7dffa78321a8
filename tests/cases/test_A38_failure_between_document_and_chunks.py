"""A38: a document's row without chunks made the next run skip it. Both are written in one transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.store.sqlite import postings
from tests import indexes


@pytest.mark.spec("I35")
def test_the_next_run_does_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs, index = indexes.write(tmp_path / "d", {"a.md": "alpha\n"}), tmp_path / "i.db"

    def fail(*arguments: object) -> None:  # the row of the document is written by then, its postings are not
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(postings, "write", fail)
        with pytest.raises(MemoryError):
            indexes.take_in(index, docs)
    assert indexes.ids(index) == []
    assert indexes.take_in(index, docs).added == 1
    assert indexes.found(index, "alpha") == {"a.md"}
    assert indexes.faults(index) == []
