"""A01: one byte that is no UTF-8 ended the whole run. It is read by a stated guess, and the rest goes in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I3", "I5")
def test_a_guess_is_stated_and_the_rest_goes_in(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.txt": b"caf\xe9 \x97 dash\n", "b.txt": "good\n"})
    told = shell("ingest", "d")
    assert told.code in {0, 4}
    assert "a.txt" in told.err
    assert {hit["document_id"] for hit in shell.hits("good")} == {"b.txt"}
    assert {hit["document_id"] for hit in shell.hits("dash")} == {"a.txt"}
