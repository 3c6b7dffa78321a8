"""How much of what one text says stands in another, by its terms: the share of their idf (Spärck Jones 1972). Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def coverage(idf: Mapping[str, float], terms: Collection[str]) -> float:
    """The share of the terms of `idf` that are among `terms`, each counted with its idf; 0 to 1, 0 of no terms."""
    whole = sum(idf.values())
    return sum(weight for term, weight in idf.items() if term in terms) / whole if whole else 0.0
