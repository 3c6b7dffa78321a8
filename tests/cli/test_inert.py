"""Hostile characters are shown, never obeyed; everything else is left alone."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.cli import inert

# Format characters of musical and shorthand notation: drawn with their neighbours, they hide and turn nothing.
NOTATION = {chr(code) for code in (*range(0x1D173, 0x1D17B), *range(0x1BCA0, 0x1BCA4))}


@pytest.mark.spec("C13")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x07\x08b\x7f", "a\\x07\\x08b\\x7f"),
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("pass\u200bword\ufeff", "pass<U+200B>word<U+FEFF>"),
        ("a\u200db", "a<U+200D>b"),
        ("\U000e0041", "<U+E0041>"),
        ("one\u2028two", "one<U+2028>two"),
        ("a\ud800b", "a<U+D800>b"),
        ("[bold]x[/] :smile:", "[bold]x[/] :smile:"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("café 故乡 עברית", "café 故乡 עברית"),
        ("👩‍🔬 می‌خواهم", "👩‍🔬 می‌خواهم"),
    ],
)
def test_line(text: str, shown: str) -> None:
    assert inert.line(text) == shown


def test_passage_keeps_line_ends_and_expands_tabs() -> None:
    assert inert.passage("a\r\nb\n\tc\rd") == "a\nb\n    c\\rd"


@pytest.mark.spec("C13")
@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Lu", "Lo", "Nd"])))
@settings(max_examples=150, deadline=None)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    harmless = set("\u00ad\u200c\u200d")  # soft hyphen; joiners between letters
    left = {c for c in inert.line(text) if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}}
    assert not left
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "BN"}
    assert not {c for c in inert.line(text) if unicodedata.bidirectional(c) in bidi} - harmless - NOTATION
