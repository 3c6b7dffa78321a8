"""BM25 by plain loops (spec I32): what the index's scores are tested against. Clear, not fast; no cleverness.

Robertson, Walker, Jones, Hancock-Beaulieu, Gatford, Okapi at TREC-3 (1994), with the idf of Lucene, which is never
negative::

    idf(t)      = ln(1 + (N - df(t) + 0.5) / (df(t) + 0.5))
    score(q, d) = Σ over the terms t of q, repeats counted:  idf(t) · tf·(k1 + 1) / (tf + k1·(1 - b + b·dl/avgdl))

N counts every document, empty ones too; avgdl is their mean length in terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log


def idf(documents: int, document_frequency: int) -> float:
    """The weight of a term that stands in `document_frequency` of `documents`."""
    return log(1 + (documents - document_frequency + 0.5) / (document_frequency + 0.5))


def gain(tf: int, length: int, mean_length: float, k1: float, b: float) -> float:
    """What `tf` occurrences in a document of `length` terms count for, before idf; `tf` is 1 or more."""
    return tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean_length))


def scores(
    corpus: Mapping[str, Sequence[str]], query: Sequence[str], k1: float = 1.5, b: float = 0.75
) -> dict[str, float]:
    """The score of every document that holds a term of the query; the others are not in it."""
    found: dict[str, float] = {}
    if not corpus:
        return found
    mean_length = sum(len(terms) for terms in corpus.values()) / len(corpus)
    for term in query:
        document_frequency = sum(term in terms for terms in corpus.values())
        for name, terms in corpus.items():
            tf = sum(other == term for other in terms)
            if tf:
                weight = idf(len(corpus), document_frequency) * gain(tf, len(terms), mean_length, k1, b)
                found[name] = found.get(name, 0.0) + weight
    return found


def ranking(
    corpus: Mapping[str, Sequence[str]], query: Sequence[str], k1: float = 1.5, b: float = 0.75
) -> list[tuple[str, float]]:
    """Documents and scores, best first; equal scores in the order of the ids."""
    return sorted(scores(corpus, query, k1, b).items(), key=lambda pair: (-pair[1], pair[0]))
