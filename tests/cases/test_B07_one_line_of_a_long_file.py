"""B07: of a file of more than 100 chunks the wrong ones were deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.options import ChunkingSettings
from tests import indexes


@pytest.mark.spec("I34")
def test_one_changed_line_changes_its_chunks(tmp_path: Path) -> None:
    small = indexes.keywords(chunking=ChunkingSettings(size=100, overlap=0))
    lines = [f"line{n} " + "filler " * 12 for n in range(220)]
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "d", {"a.txt": "\n".join(lines)})
    indexes.take_in(index, docs, settings=small)
    before = {chunk.text for chunk in indexes.content(index)["a.txt"][3]}
    assert len(before) >= 200
    lines[110] = lines[110].replace("line110", "lineCXI")
    indexes.write(docs, {"a.txt": "\n".join(lines)})
    assert indexes.take_in(index, docs, settings=small).changed == 1
    after = {chunk.text for chunk in indexes.content(index)["a.txt"][3]}
    assert len(before - after) == len(after - before) == 1
    assert indexes.found(index, "line110") == set()
    assert [hit[:1] for hit in indexes.search(index, "lineCXI")] == [("a.txt",)]
    assert indexes.rows(index, "SELECT count(*) FROM chunks") == [(len(after),)]
    assert indexes.faults(index) == []
