"""Counts in words: `1 chunk`, `1,200 chunks`. English only, as all messages are."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """The count with its noun, in the plural unless there is one; nouns that take an -s only."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
