"""C10: words with a hyphen or an underscore. Both part words; the query is cut in the same way, so the form is found.

`realtime` is another word than `real-time`: it finds only itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I33")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("real-time", ["hyphen.md"]),
        ("real time", ["hyphen.md"]),
        ("Real-Time", ["hyphen.md"]),
        ("my_var_name", ["underscore.md"]),
        ("MY_VAR_NAME", ["underscore.md"]),
        ("my var name", ["underscore.md"]),
        ("realtime", ["joined.md"]),
    ],
)
def test_the_form_is_found(shell: Shell, tmp_path: Path, query: str, found: list[str]) -> None:
    files = {
        "hyphen.md": "a real-time gauge\n",
        "underscore.md": "set my_var_name to 3\n",
        "joined.md": "the realtime feed\n",
    }
    indexes.write(tmp_path / "d", files)
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits(query)] == found
