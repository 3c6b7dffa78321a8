"""C05: everything but ASCII was dropped (`café` became `caf`).

Accents are kept: `cafe` does not find `café`. With `analyzer.fold_accents: true` both are the same term.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell

WITH_ACCENTS, WITHOUT = "café naïve\n", "cafe naive\n"


@pytest.mark.spec("I33")
@pytest.mark.parametrize("query", ["초과근무", "계산", "OvertimeService", "overtimeservice"])
def test_korean_beside_english_is_found(shell: Shell, tmp_path: Path, query: str) -> None:
    indexes.write(tmp_path / "d", {"a.md": "OvertimeService 초과근무 계산\n", "b.md": "something else\n"})
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits(query)] == ["a.md"]


@pytest.mark.spec("I33")
@pytest.mark.parametrize(
    ("query", "kept", "folded"),
    [
        ("café", {"with.md"}, {"with.md", "without.md"}),
        ("cafe", {"without.md"}, {"with.md", "without.md"}),
        ("cafe\u0301", {"with.md"}, {"with.md", "without.md"}),  # the accent as a character of its own
        ("NAÏVE", {"with.md"}, {"with.md", "without.md"}),
        ("caf", set(), set()),
    ],
)
def test_accents_are_kept_unless_folding_is_on(
    shell: Shell, tmp_path: Path, query: str, kept: set[str], folded: set[str]
) -> None:
    indexes.write(tmp_path / "d", {"with.md": WITH_ACCENTS, "without.md": WITHOUT})
    shell("ingest", "d")
    assert {hit["document_id"] for hit in shell.hits(query)} == kept
    (tmp_path / "ragcli.yaml").write_text("analyzer:\n  fold_accents: true\n", encoding="utf-8")
    assert shell("query", query).code == 3  # an index built the other way can't answer
    assert shell("ingest", "d", "--reset", "--yes").code == 0
    assert {hit["document_id"] for hit in shell.hits(query)} == folded
