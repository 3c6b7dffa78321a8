"""Positions (I15), pages (I13), headings (I12) and the context header (I24) of chunks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.chunk import chunk, chunker, header
from ragcli.chunk.fixed import Fixed
from ragcli.chunk.markdown import Markdown
from ragcli.chunk.recursive import Recursive
from ragcli.errors import ConfigError, UsageError
from ragcli.options import ChunkingSettings
from ragcli.types import Document, Heading, Span
from tests.chunk.strategies import CHARACTER_STRATEGIES, document, texts


def spans_of(*spans: Span) -> Any:
    return lambda document: list(spans)


@pytest.mark.spec("I15")
@settings(max_examples=60, deadline=None)
@given(text=texts(), first=st.integers(1, 9), strategy=st.sampled_from(CHARACTER_STRATEGIES))
def test_text_and_lines_are_those_of_the_document(text: str, first: int, strategy: Any) -> None:
    source = Document(id="d", text=text, first_line=first, headings=document(text).headings)
    for index, found in enumerate(chunk(source, strategy(20, 5), context_header=True)):
        assert found.index == index
        assert found.text == text[found.start : found.end]
        assert found.start_line == first + sum(c == "\n" for c in text[: found.start])
        assert found.end_line == first + sum(c == "\n" for c in text[: found.end - 1])


@pytest.mark.spec("I15")
def test_lines_of_a_single_chunk_below_front_matter() -> None:
    (found,) = chunk(Document(id="d", text="\n\none\ntwo\n", first_line=4), Recursive(), context_header=False)
    assert (found.text, found.start_line, found.end_line) == ("one\ntwo", 6, 7)


@pytest.mark.spec("I13")
@pytest.mark.parametrize(
    ("span", "pages"),
    [((0, 10), (1, None)), ((5, 11), (1, 3)), ((10, 20), (3, None)), ((12, 35), (3, 4)), ((30, 40), (4, None))],
)
def test_pages(span: Span, pages: tuple[int, int | None]) -> None:
    """Pages start at 0, 10, 10 and 30: the second is empty."""
    source = Document(id="d", text="x" * 40, pages=(0, 10, 10, 30))
    (found,) = chunk(source, spans_of(span), context_header=True)
    assert (found.page, found.page_end) == pages


TEXT = "introduce\n# Chapter 1\ntext\n## Section 1\nmore\n## Section 2\nmore\n# Chapter 2\nlast"
HEADINGS = tuple(
    Heading(TEXT.index(line), line.count("#"), line.lstrip("# "))
    for line in ("# Chapter 1", "## Section 1", "## Section 2", "# Chapter 2")
)


@pytest.mark.spec("I12")
def test_the_heading_in_force_where_the_chunk_starts() -> None:
    source = Document(id="d", text=TEXT, headings=HEADINGS)
    at = [0, *(heading.start for heading in HEADINGS), len(TEXT) - 4]
    spans = [(start, start + 3) for start in at]
    found = chunk(source, spans_of(*spans), context_header=True)
    assert [(c.heading, c.heading_level, c.heading_breadcrumb) for c in found] == [
        ("", 0, ""),
        ("Chapter 1", 1, "Chapter 1"),
        ("Section 1", 2, "Chapter 1 > Section 1"),
        ("Section 2", 2, "Chapter 1 > Section 2"),
        ("Chapter 2", 1, "Chapter 2"),
        ("Chapter 2", 1, "Chapter 2"),
    ]


@pytest.mark.spec("I12")
def test_without_a_heading_in_force_the_first_inside_the_chunk() -> None:
    (found,) = chunk(Document(id="d", text=TEXT, headings=HEADINGS), spans_of((0, len(TEXT))), context_header=True)
    assert (found.heading, found.heading_level, found.heading_breadcrumb) == ("Chapter 1", 1, "Chapter 1")


@pytest.mark.spec("I12")
def test_markdown_sections_carry_their_own_breadcrumb() -> None:
    source = Document(id="d", text=TEXT, headings=HEADINGS)
    found = chunk(source, Markdown(24, 0), context_header=True)
    assert [c.heading_breadcrumb for c in found if c.text.startswith("#")] == [
        "Chapter 1",
        "Chapter 1 > Section 1",
        "Chapter 1 > Section 2",
        "Chapter 2",
    ]


@pytest.mark.spec("I24")
@pytest.mark.parametrize(
    ("title", "name", "breadcrumb", "lines"),
    [
        ("The title", "", "", ["The title"]),  # a record of a collection: title + text is the published set-up
        ("", "2026-03-16.md", "", ["2026-03-16.md"]),
        ("Guide", "guide.md", "Part 1 > Step 2", ["Guide", "Part 1 > Step 2", "guide.md"]),
        ("Guide", "guide.md", "Guide > Step 2", ["Guide > Step 2", "guide.md"]),
        ("Guide", "guide.md", "Guide", ["Guide", "guide.md"]),
        ("Guide", "guide.md", "Guided tour", ["Guide", "Guided tour", "guide.md"]),
        ("notes.txt", "notes.txt", "", ["notes.txt"]),
        ("Two\n  lines", "", "", ["Two lines"]),
        ("", "", "", []),
    ],
)
def test_header(title: str, name: str, breadcrumb: str, lines: list[str]) -> None:
    assert header(Document(id="d", text="x", title=title, name=name), breadcrumb) == "\n".join(lines)


@pytest.mark.spec("I24")
@pytest.mark.parametrize("size", [10, 1000])
def test_the_header_is_no_part_of_the_text_and_is_an_option(size: int) -> None:
    source = Document(id="d", text="some words that are cut", title="T", name="f.txt")
    with_header = chunk(source, Fixed(size, 0), context_header=True)
    without = chunk(source, Fixed(size, 0), context_header=False)
    assert {c.context for c in with_header} == {"T\nf.txt"}
    assert {c.context for c in without} == {""}
    assert [c.text for c in with_header] == [c.text for c in without]


@pytest.mark.spec("I20")
@pytest.mark.parametrize("name", ["recursive", "markdown", "sentence", "token", "code", "fixed"])
def test_every_strategy_by_name(name: str) -> None:
    made: Any = chunker(ChunkingSettings(strategy=name, size=300, overlap=30, unit="tokens"), lambda: None)  # type: ignore[arg-type, return-value]
    assert (type(made).__name__.lower(), made.size, made.overlap, made.unit) == (name, 300, 30, "tokens")
    assert made.tokenizer is not None


@pytest.mark.spec("I20")
def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(UsageError, match="semantical"):
        chunker(ChunkingSettings(strategy="semantical"))


@pytest.mark.spec("I20")
def test_foreign_code_that_takes_no_size_is_named() -> None:
    with pytest.raises(ConfigError, match="fractions:Fraction"):
        chunker(ChunkingSettings(strategy="fractions:Fraction"))
