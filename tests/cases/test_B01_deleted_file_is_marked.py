"""B01: a deleted or edited file was returned as if nothing had happened. Its hits say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("C12")
def test_hits_of_changed_files_say_so(shell: Shell, tmp_path: Path) -> None:
    docs = indexes.write(
        tmp_path / "d", {"ghost.md": "ghosttoken\n", "edited.md": "editedtoken\n", "same.md": "sametoken\n"}
    )
    shell("ingest", "d")
    (docs / "ghost.md").unlink()
    (docs / "edited.md").write_text("something else\n")
    states = {word: [hit["stale"] for hit in shell.hits(word)] for word in ("ghosttoken", "editedtoken", "sametoken")}
    assert states == {"ghosttoken": ["missing"], "editedtoken": ["changed"], "sametoken": [None]}
