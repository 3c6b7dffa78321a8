"""A40 (obsidian-mcp #10, litellm #38980): an overlap of the size or more is refused, not looped on for ever."""

from __future__ import annotations

import pytest

from ragcli.errors import OptionError
from ragcli.options import ChunkingSettings


@pytest.mark.spec("I20")
@pytest.mark.parametrize("overlap", [512, 513, 100_000])
def test_A40_overlap_of_the_size_or_more_names_both_keys(overlap: int) -> None:
    with pytest.raises(OptionError) as caught:
        ChunkingSettings(size=512, overlap=overlap)
    assert "chunking.overlap" in caught.value.message
    assert "chunking.size" in caught.value.message
    assert caught.value.exit_code == 2
