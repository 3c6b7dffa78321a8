"""Spec I21, over every strategy: the invariants as properties, against plain loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.chunk.measure import TokenizerSource
from ragcli.types import Span
from tests.chunk.strategies import CHARACTER_STRATEGIES, STRATEGIES, cut_clusters, document, texts, uncovered

pytestmark = pytest.mark.spec("I21")

SIZES = st.integers(1, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))
SMALL_RUNS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(text: str, spans: list[Span], size: int, overlap: int, length: Callable[[str], int]) -> None:
    assert uncovered(text, spans) == []
    over = [text[a:b] for a, b in spans if length(text[a:b]) > size]
    assert [piece for piece in over if len(piece) > 1] == []  # one code point may be more tokens than the size
    shared = [text[b_start:a_end] for (_, a_end), (b_start, _) in pairwise(spans)]
    assert [piece for piece in shared if length(piece) > overlap] == []
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(spans))
    assert all(text[a:b].strip() for a, b in spans)
    assert cut_clusters(text, spans, size, length) == []


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@SMALL_RUNS
@given(text=texts(), sizes=SIZES, name=st.sampled_from(["", "m.py"]))
def test_in_characters(strategy: Any, text: str, sizes: tuple[int, int], name: str) -> None:
    size, overlap = sizes
    spans = strategy(size, overlap)(document(text, name=name))
    check(text, spans, size, overlap, len)
    assert strategy(size, overlap)(document(text, name=name)) == spans


@pytest.mark.parametrize("strategy", STRATEGIES)
@SMALL_RUNS
@given(text=texts(), sizes=SIZES)
def test_in_tokens(strategy: Any, text: str, sizes: tuple[int, int], tokenizer: TokenizerSource) -> None:
    size, overlap = sizes
    chunker = strategy(size, overlap, "tokens", tokenizer)
    spans = chunker(document(text))
    check(text, spans, size, overlap, tokenizer().count)
    assert chunker(document(text)) == spans


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@SMALL_RUNS
@given(text=texts())
def test_white_space_around_a_chunk_is_left_out_unless_a_cluster_holds_it(strategy: Any, text: str) -> None:
    for start, end in strategy(30, 7)(document(text)):
        first, last = text[start], text[end - 1]
        assert not first.isspace() or strategy.__name__ == "Code" or not text[start + 1].isascii()
        assert not last.isspace() or not text[end - 2].isascii()


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@SMALL_RUNS
@given(text=texts())
def test_what_fits_is_one_chunk(strategy: Any, text: str) -> None:
    spans = strategy(10_000, 100)(document(text, headings=False))
    assert len(spans) == (1 if text.strip() else 0)


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
@pytest.mark.parametrize("text", ["", "\n", " \t\r\n\u3000", "\n" * 5000])
@pytest.mark.spec("I21")
def test_a_blank_document_has_no_chunk(strategy: Any, text: str) -> None:
    assert strategy()(document(text)) == []


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
def test_a_cluster_over_the_size_is_cut_and_its_neighbours_are_not(strategy: Any) -> None:
    text = "ab e" + "\u0301" * 100 + "cd"
    spans = strategy(10, 2)(document(text))
    assert uncovered(text, spans) == []
    assert max(end - start for start, end in spans) == 10
    assert text[spans[-1][0] : spans[-1][1]].endswith("cd")
