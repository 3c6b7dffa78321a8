"""Cut points against regex's \\X over the whole text (UAX 29)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.chunk import graphemes
from tests.chunk.strategies import clusters, texts

pytestmark = pytest.mark.spec("I21")


@settings(max_examples=150, deadline=None)
@given(text=texts(), data=st.data())
def test_floor_and_ceiling_are_the_boundaries_around(text: str, data: st.DataObject) -> None:
    boundaries = [0, *(end for _, end in clusters(text))]
    start = data.draw(st.sampled_from(boundaries))
    index = data.draw(st.integers(start, len(text)))
    assert graphemes.floor(text, start, index) == max(place for place in boundaries if place <= index)
    assert graphemes.ceiling(text, start, index, len(text)) == min(place for place in boundaries if place >= index)


@pytest.mark.parametrize("run", [1, 2, 3, 1000, 1001])
def test_flags_are_pairs_from_the_start_of_their_run(run: int) -> None:
    text = "x" + "\U0001f1e9" * run + "\u0301y"
    for index in (run - 1, run, run + 1):
        if index >= 1:
            inside = index - 1 if (index - 1) % 2 and index - 1 < run else index
            if index == run + 1:  # before the mark, which belongs to the last flag or half flag
                inside = index - (2 if run % 2 == 0 else 1)
            assert graphemes.floor(text, 0, index) == inside
