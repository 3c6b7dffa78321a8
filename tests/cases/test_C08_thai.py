"""C08: Thai is written without spaces between words.

Documented behaviour: a run of Thai letters with their vowel and tone marks is one term. The whole run is found, a part
of it is not; only Chinese, Japanese and Korean runs are cut into pairs. Marks never split a run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I33")
@pytest.mark.parametrize(
    ("query", "found"), [("ประเทศไทย", ["a.md"]), ("ประเทศ", []), ("ไทย", []), ("น้ำ", ["b.md"]), ("น", [])]
)
def test_a_whole_run_is_found_and_a_part_is_not(shell: Shell, tmp_path: Path, query: str, found: list[str]) -> None:
    indexes.write(tmp_path / "d", {"a.md": "ประเทศไทย\n", "b.md": "น้ำ\n"})
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits(query)] == found
    assert len(shell("inspect", "--terms", "ประเทศไทย", "--json").json()["terms"]) == 1
