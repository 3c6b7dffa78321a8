"""Answers without a language model: the sentences of the sources that bear most on the question, word for word (A1).

A sentence is worth 0.3 × its cosine with the question + 0.7 × the share of the question's terms in it, by idf, + 0.3 ×
the standing of its source (1 of the first, down to 1/n of the last of n). The weights are the best of a grid over
covidqa, cmrc2018 and xquad-multi, near which all are alike (`make bench-answers` measures what they give). Without
vectors the cosine counts as 0. Writes nothing of its own but the markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ragcli.answer.citations import escaped
from ragcli.answer.worth import coverage
from ragcli.chunk.breaks import sentences
from ragcli.types import Hit, Lens

NAME = "extractive"
COSINE, TERMS, STANDING = 0.3, 0.7, 0.3
FEWEST_TERMS = 3  # of a sentence that says something
_LIST_MARK = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)]) +")


class Extract(msgspec.Struct, frozen=True):
    """A sentence, the numbers of the sources that hold it, and what it is worth."""

    text: str
    sources: tuple[int, ...]
    value: float


def extracts(question: str, hits: Sequence[Hit], lens: Lens, most: int) -> tuple[Extract, ...]:
    """The best sentences, the best first; equal text once, with all its sources."""
    found = list(_sentences(hits, lens))
    if not found:
        return ()
    idf = lens.idf(lens.terms(question))
    cosines = _cosines(question, [text for _, text in found], lens)
    worth: dict[str, Extract] = {}
    for (number, text), cosine in zip(found, cosines, strict=True):
        standing = 1 - (number - 1) / len(hits)
        value = COSINE * cosine + TERMS * coverage(idf, set(lens.terms(text))) + STANDING * standing
        known = worth.get(text)
        worth[text] = Extract(text, (number,), value) if known is None else _joined(known, number, value)
    return tuple(sorted(worth.values(), key=lambda one: (-one.value, one.sources))[:most])


def written(found: Sequence[Extract]) -> str:
    """The extracts as an answer: a line each, in quotation marks, with the markers of its sources.

    What in a text would be read as a marker gets a backslash: a source can't cite.
    """
    return "\n".join(
        f"“{escaped(one.text)}” {''.join(f'[Source {number}]' for number in one.sources)}" for one in found
    )


def _joined(known: Extract, number: int, value: float) -> Extract:
    numbers = known.sources if number in known.sources else (*known.sources, number)
    return Extract(known.text, numbers, max(known.value, value))


def _sentences(hits: Sequence[Hit], lens: Lens) -> Iterator[tuple[int, str]]:
    """(source number, sentence on one line) of all that say something; headings don't."""
    for number, hit in enumerate(hits, 1):
        text = hit.chunk.text if hit.compressed_text is None else hit.compressed_text
        for start, end in sentences(text):
            sentence = without_mark(" ".join(text[start:end].split()))
            if not sentence.startswith("#") and len(lens.terms(sentence)) >= FEWEST_TERMS:
                yield number, sentence


def without_mark(line: str) -> str:
    """Without the mark of a list's item."""
    mark = _LIST_MARK.match(line)
    return line[mark.end() :] if mark else line


def _cosines(question: str, texts: Sequence[str], lens: Lens) -> Sequence[float]:
    distinct = list(dict.fromkeys(texts))
    query, rows = lens.query_vector(question), lens.vectors(distinct)
    if query is None or rows is None:
        return [0.0] * len(texts)
    found = dict(zip(distinct, (rows @ query).tolist(), strict=True))
    return [found[text] for text in texts]
