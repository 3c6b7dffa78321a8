"""A41 (Muvon/octocode PR #27): a chunk of exactly the overlap's lines must still advance."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.chunk.strategies import CHARACTER_STRATEGIES, document, uncovered


@pytest.mark.spec("I21")
@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@pytest.mark.parametrize("overlap", [299, 300, 5000])
def test_A41_very_long_lines_with_an_overlap_of_a_whole_chunk(strategy: Any, overlap: int) -> None:
    """Made directly, past the check of the settings: no overlap can stop it."""
    text = "\n".join(letter * 1000 for letter in "abcd")
    spans = strategy(300, overlap)(document(text))
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(spans))
    assert uncovered(text, spans) == []


@pytest.mark.spec("I21")
def test_A41_lines_of_exactly_the_overlap() -> None:
    from ragcli.chunk.recursive import Recursive

    text = "\n".join("word" * 25 for _ in range(20))  # lines of 100 characters; overlap = a chunk's lines
    spans = Recursive(201, 200)(document(text))
    assert all(a[1] < b[1] for a, b in pairwise(spans))
    assert len(spans) <= len(text)
