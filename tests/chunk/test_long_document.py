"""A document of 500 KB is many chunks, each within the size; nothing is truncated."""

from __future__ import annotations

from typing import Any

import pytest

from ragcli.chunk.measure import TokenizerSource
from tests.chunk.strategies import CHARACTER_STRATEGIES, STRATEGIES, document

TEXT = "The quick brown fox jumps over the lazy dog, and then 它跑得很快。 " * 9_000


@pytest.mark.spec("I21")
@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
def test_every_chunk_is_within_the_size_and_all_of_it_is_there(strategy: Any) -> None:
    assert len(TEXT.encode()) > 500_000
    spans = strategy(1600, 0)(document(TEXT))
    assert max(end - start for start, end in spans) <= 1600
    joined = "".join("".join(TEXT[a:b].split()) for a, b in spans)
    assert joined == "".join(TEXT.split())


@pytest.mark.spec("I21")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_within_a_models_window_in_tokens(strategy: Any, tokenizer: TokenizerSource) -> None:
    spans = strategy(256, 0, "tokens", tokenizer)(document(TEXT))
    assert max(tokenizer().count(TEXT[a:b]) for a, b in spans) <= 256
    assert "".join("".join(TEXT[a:b].split()) for a, b in spans) == "".join(TEXT.split())
