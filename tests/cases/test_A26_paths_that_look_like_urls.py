"""A26: a file URL lost its drive or kept its percent escapes, and a drive letter was read as a URL scheme."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.read.walk import local_path
from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I1")
@pytest.mark.parametrize(
    ("argument", "path"),
    [
        (r"C:\docs\a.pdf", r"C:\docs\a.pdf"),
        ("file:///C:/docs/a.pdf", "C:/docs/a.pdf"),
        ("file:///C:/d/a%20b.md", "C:/d/a b.md"),
        ("file:///home/ann/%5Bx%5D%20y.md", "/home/ann/[x] y.md"),
        (r"\\srv\share\a.md", r"\\srv\share\a.md"),
    ],
)
def test_the_path_is_the_one_that_is_meant(argument: str, path: str) -> None:
    assert local_path(argument) == path


@pytest.mark.spec("I1")
def test_a_file_url_is_read(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "d", {"[x] a b.md": "the gauge\n"})
    assert shell("ingest", (docs / "[x] a b.md").as_uri()).code == 0
    assert [hit["path"] for hit in shell.hits("gauge")] == [str(docs / "[x] a b.md")]
