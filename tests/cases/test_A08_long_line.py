"""A08 (zylon-ai/private-gpt #989): a 5 MB single line without spaces must not stall the run."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest

from tests.chunk.strategies import CHARACTER_STRATEGIES, document


@pytest.mark.spec("I21")
@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
def test_A08_a_line_of_five_megabytes_is_cut_in_bounded_time(strategy: Any) -> None:
    text = "x" * 5_000_000
    start = perf_counter()
    spans = strategy(1600, 160)(document(text))
    assert perf_counter() - start < 10  # 0.2 s where it was written
    assert spans[0] == (0, 1600)
    assert spans[-1][1] == 5_000_000
    assert len(spans) == 3473  # 1600 characters, then 1440 new ones a chunk: 1 + ceil((5e6 - 1600) / 1440)
