"""C07: documents with a score of zero were returned as hits. What shares no term with the query is no hit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I32")
def test_nothing_is_returned_for_words_that_are_not_there(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {f"{n}.md": f"gauge number{n}\n" for n in range(8)})
    shell("ingest", "d")
    asked = shell("query", "zeppelin armada", "--format", "json", "--top-k", "5")
    assert (asked.code, asked.json()["hits"]) == (0, [])
    assert "note: not in the index: zeppelin, armada" in asked.err


@pytest.mark.spec("I32")
def test_a_page_is_not_filled_up_with_what_does_not_match(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {f"{n}.md": f"gauge number{n}\n" for n in range(8)})
    shell("ingest", "d")
    (hit,) = shell.hits("number3 zeppelin")
    assert (hit["document_id"], hit["score"] > 0) == ("3.md", True)
