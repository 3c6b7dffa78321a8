"""F14: the page where a window starts was given for a hit further on.

A chunk that spans pages says from which to which. One that lies on one page says that page, and no range.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.read.sources import pdf

PAGES = ["alpha " * 12, "bravo " * 12, "charlie " * 12, "the delta gauge"]


def hit_of(shell: Shell, folder: Path, *flags: str) -> dict[str, object]:
    indexes.write(folder / "d", {"manual.pdf": pdf(PAGES)})
    assert shell("ingest", "d", "--chunk-overlap", "0", *flags).code == 0
    (hit,) = shell.hits("delta")
    return hit


@pytest.mark.spec("I13")
def test_a_chunk_over_two_pages_gives_both(shell: Shell, tmp_path: Path) -> None:
    # pages of 71, 71 and 95 characters: two to a chunk of 150
    hit = hit_of(shell, tmp_path, "--chunk-size", "150")
    assert "charlie" in str(hit["text"])
    assert (hit["page"], hit["page_end"]) == (3, 4)
    assert shell("query", "delta").out.startswith("1. d/manual.pdf p. 3-4  ")


@pytest.mark.spec("I13")
def test_a_chunk_on_one_page_gives_that_page(shell: Shell, tmp_path: Path) -> None:
    hit = hit_of(shell, tmp_path, "--chunk-size", "100")
    assert hit["text"] == "the delta gauge"
    assert hit["page"] == 4
    assert hit.get("page_end", 4) == 4
    assert shell("query", "delta").out.startswith("1. d/manual.pdf p. 4  ")
