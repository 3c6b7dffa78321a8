"""A47: `cat a.md | ragcli ingest - --name a.md` stores one document of that name."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I1")
def test_the_document_has_the_given_name(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, added in (("# Piped\n\nfrom a pipe\n", 1), ("# Piped\n\nfrom a pipe\n", 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        told = shell("ingest", "-", "--name", "a.md", "--json")
        assert (told.code, told.json()["added"]) == (0, added)
    (hit,) = shell.hits("pipe")
    assert (hit["document_id"], hit["stale"], hit.get("heading")) == ("a.md", None, "Piped")
    assert indexes.faults(indexes.index_of(tmp_path)) == []


@pytest.mark.spec("I34")
def test_another_text_under_the_same_name_takes_its_place(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("alpha\n", "beta\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert shell("ingest", "-", "--name", "a.md").code == 0
    assert [hit["document_id"] for hit in shell.hits("beta")] == ["a.md"]
    assert shell.hits("alpha") == []
