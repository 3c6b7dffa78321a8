"""A16: a name with special characters was stored mangled and could not be opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I6")
def test_the_path_is_the_real_one(shell: Shell, tmp_path: Path) -> None:
    name = "# Meeting - 234 __ [x] (y) & z.md"
    docs = indexes.write(tmp_path / "d", {name: "agenda\n"})
    assert shell("ingest", "d").code == 0
    (hit,) = shell.hits("agenda")
    assert hit["document_id"] == name
    assert Path(hit["path"]) == docs / name
    shown = shell("inspect", "--document", hit["document_id"], "--json")
    assert shown.code == 0
    assert shown.json()["id"] == name
