"""A28: Markdown and HTML whose first bytes look like a bitmap (`BM`) or an MP3 (`ID3`) were misrouted."""

from __future__ import annotations

import pytest

from tests.read.sources import one


@pytest.mark.spec("I2", "I4")
@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("bm.md", b"BM25 is a ranking function", "markdown"),
        ("id3.md", b"ID3 builds a decision tree", "markdown"),
        ("bm.html", b"BM25 is a ranking function", "html"),
        ("gif", b"GIF89a was published in 1989", "text"),
    ],
)
def test_it_is_text(name: str, data: bytes, kind: str) -> None:
    document = one(name, data)
    assert (document.text, document.format) == (data.decode(), kind)
