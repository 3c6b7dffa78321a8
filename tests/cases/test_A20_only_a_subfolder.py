"""A20: a subfolder could not be indexed alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.options import IngestSettings
from ragcli.read.walk import walk


@pytest.mark.spec("I1")
def test_only_the_subtree_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "docs/b.md", "docs/sub/c.md", "docs/sub/deep/d.md", "docs/sub2/e.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.chdir(tmp_path)
    sources = walk(["./docs/sub"], IngestSettings(), report=lambda problem: None)
    assert [(Path(source.location).read_text(), source.relative) for source in sources] == [
        ("docs/sub/c.md", "c.md"),
        ("docs/sub/deep/d.md", "deep/d.md"),
    ]
