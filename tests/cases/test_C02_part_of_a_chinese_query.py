"""C02: one missing word of a Chinese query lost the document. It comes back, below one that has all the words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I33")
def test_a_partial_match_comes_back_with_a_lower_score(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"part.md": "云工开物 300 元学生券\n"})
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits("云工开物 优惠券")] == ["part.md"]
    indexes.write(tmp_path / "d", {"whole.md": "云工开物 300 元优惠券\n"})
    shell("ingest", "d")
    whole, part = shell.hits("云工开物 优惠券")
    assert (whole["document_id"], part["document_id"]) == ("whole.md", "part.md")
    assert whole["score"] > part["score"] > 0
