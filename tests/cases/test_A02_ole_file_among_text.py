"""A02: an OLE file read as text aborted the ingest of a folder. It is a named skip, and the others go in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.errors import NotSupported
from ragcli.options import IngestSettings
from ragcli.read.formats import read
from ragcli.read.load import requests
from ragcli.read.walk import walk
from ragcli.types import Document, ReadRequest

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@pytest.mark.spec("I2", "I5")
@pytest.mark.parametrize("name", ["old.doc", "old.md", "old"])
def test_an_ole_file_is_skipped_by_name_and_the_others_are_kept(tmp_path: Path, name: str) -> None:
    for kept in ("a.md", "b.md", "z.md"):
        (tmp_path / kept).write_text(f"# {kept}\n")
    (tmp_path / name).write_bytes(OLE)
    documents, skipped = [], []
    for source in walk([str(tmp_path)], IngestSettings(), report=lambda problem: None):
        for request in requests(source, max_bytes=1000):
            assert isinstance(request, ReadRequest)
            try:
                documents += [item.id for item in read(request) if isinstance(item, Document)]
            except NotSupported as error:
                skipped.append(error.message)
    assert documents == ["a.md", "b.md", "z.md"]
    assert len(skipped) == 1
    assert name in skipped[0]
