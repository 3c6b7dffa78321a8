"""A05: Markdown in UTF-16 or UTF-8 with a byte order mark could not be decoded. Both are read, the mark is no term."""

from __future__ import annotations

import pytest

from ragcli.options import AnalyzerSettings
from ragcli.text import Analyzer
from tests.read.sources import one


@pytest.mark.spec("I3")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
def test_the_first_term_is_the_first_word(encoding: str) -> None:
    document = one("page.md", "\ufeffTitle of the page\n\n- first block\n".encode(encoding))
    assert document.text.startswith("Title of the page")
    assert document.warnings == ()
    assert Analyzer(AnalyzerSettings()).terms(document.text)[0] == "title"


@pytest.mark.spec("I3", "I12")
def test_a_heading_behind_the_mark_is_a_heading() -> None:
    assert one("page.md", "\ufeff# Title\n".encode("utf-16-le")).title == "Title"
