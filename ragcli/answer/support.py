"""Do the sources say what an answer says? (spec A9, `--verify`) A sentence is held against each source that was sent.

    support = 0.6 × terms + 0.4 × cosine

`terms`: the largest share of the sentence's terms, by idf, that three successive sentences of the source hold;
`cosine`: the largest one with a sentence of it. A source supports a sentence from 0.5 on, if it also holds every number
in it. Without vectors the terms decide alone, from 0.4 on. Weights and floors are the best of a grid over statements
made from covidqa, cmrc2018 and xquad-multi, each with its own source, with another one for the same question, and with
one for another; `make bench-answers` measures precision and recall.

It compares words and meaning, and does no logic: a "not" too many, or two names changed round, go unnoticed. What is
about the sources themselves ("they do not say …") is not held against them, nor is what leads in a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ragcli.answer.citations import leading_markers, without_markers
from ragcli.answer.extractive import without_mark
from ragcli.answer.worth import coverage
from ragcli.chunk.breaks import sentences
from ragcli.types import Citation, Hit, Lens, Span, Statement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TERMS, COSINE = 0.6, 0.4
FLOOR, FLOOR_OF_TERMS = 0.5, 0.4
SPAN = 3  # sentences of a source that are seen together
_BEFORE_STOP = re.compile(r" (?=[.,;:!?])")  # what a marker leaves
FEWEST_TERMS = 3  # of a sentence that states something


class _Said(msgspec.Struct, frozen=True):
    """A sentence of an answer: where it stands, its text without markers, the citations in it or behind it."""

    start: int
    end: int
    text: str
    cited: tuple[int, ...]


class _Source(msgspec.Struct, frozen=True):
    """A source: the terms of each run of its sentences, all of its terms, the vectors of its sentences."""

    runs: tuple[frozenset[str], ...]
    terms: frozenset[str]
    vectors: NDArray[np.float32] | None  # (n_sentences, dimension)


def statements(text: str, found: Sequence[Citation], sources: Sequence[Hit], lens: Lens) -> tuple[Statement, ...]:
    """Each sentence of the answer that states something, judged. `found`: the citations of the text."""
    said = [one for one in _said(text, found) if _states(one.text, lens)]
    if not said:
        return ()
    known = [_source(hit, lens) for hit in sources]
    rows = lens.vectors([one.text for one in said])
    judged = (
        _judged(one, known, lens, None if rows is None else rows[at], sources=len(sources))
        for at, one in enumerate(said)
    )
    return tuple(judged)


def judged_citations(found: Sequence[Citation], said: Sequence[Statement]) -> tuple[Citation, ...]:
    """The citations, each with whether its source supports the sentence that it belongs to; None: it has none."""
    return tuple(_with_support(one, said) for one in found)


def _with_support(one: Citation, said: Sequence[Statement]) -> Citation:
    of = next((each for each in said if each.start <= one.start < each.end), None)
    if of is None or not one.valid:
        return one
    return replace(one, supported=one.source in of.supporting)


# ----------------------------------------------------------------------------------------------------------- sentences


def _said(text: str, found: Sequence[Citation]) -> Iterator[_Said]:
    """The sentences; markers behind the end of one belong to it, not to the next."""
    spans: list[Span] = []
    for start, end in sentences(_closed(text, found)):
        bare = without_markers(text[start:end]).strip(" .,;:()*_-")
        if spans and not bare:
            spans[-1] = (spans[-1][0], end)
        elif spans and (lead := leading_markers(text[start:end])) and _follow(text, spans[-1][1], start, start + lead):
            spans[-1] = (spans[-1][0], start + lead)
            spans.append((end - len(text[start + lead : end].lstrip()), end))
        else:
            spans.append((start, end))
    for start, end in spans:
        cited = (one.source for one in found if start <= one.start < end and one.valid)
        said = without_mark(_BEFORE_STOP.sub("", " ".join(without_markers(text[start:end]).split())))
        yield _Said(start, end, said, tuple(dict.fromkeys(cited)))


def _closed(text: str, found: Sequence[Citation]) -> str:
    """The text with closing brackets for markers: with those a sentence may end, as in `so.[1] But`."""
    for one in found:
        text = f"{text[: one.start]}{']' * (one.end - one.start)}{text[one.end :]}"
    return text


def _follow(text: str, before: int, start: int, end: int) -> bool:
    """Whether markers, `text[start:end]`, belong to what ends at `before`: on its line, or alone on their own."""
    return "\n" not in text[before:start] or text[end:].lstrip(" \t").startswith(("\n", "\r"))


def _states(sentence: str, lens: Lens) -> bool:
    """Whether it says something of the world, and not of the sources, nor only leads in a list."""
    is_lead = sentence.endswith(":") or sentence.startswith("#") or sentence.endswith("?")
    return not is_lead and not _of_sources().search(sentence) and len(lens.terms(sentence)) >= FEWEST_TERMS


@cache
def _of_sources() -> re.Pattern[str]:
    """What says that the sources don't say something, or that whoever writes does not know."""
    them = r"(?:sources?|context|documents?|passages?|texts?|information)"
    negation = r"(?:not|no|nothing|none|\w+n['\u2019]t|cannot|without|lacks?)"
    unable = r"^(?:sorry|i(?: am|['\u2019]m) (?:sorry|not|unable)|i (?:(?:do|did|can|could) ?not|\w+n['\u2019]t))\b"
    return re.compile(rf"\b{them}\b.{{0,60}}\b{negation}\b|\b{negation}\b.{{0,60}}\b{them}\b|{unable}", re.IGNORECASE)


# ------------------------------------------------------------------------------------------------------------ judgement


def _source(hit: Hit, lens: Lens) -> _Source:
    text = hit.chunk.text if hit.compressed_text is None else hit.compressed_text
    parts = [" ".join(text[start:end].split()) for start, end in sentences(text)] or [text]
    terms = [frozenset(lens.terms(part)) for part in parts]
    runs = tuple(frozenset().union(*terms[at : at + SPAN]) for at in range(max(len(terms) - SPAN + 1, 1)))
    return _Source(runs, frozenset(lens.terms(f"{hit.chunk.context}\n{text}")), lens.vectors(parts))


def _judged(
    said: _Said, known: Sequence[_Source], lens: Lens, row: NDArray[np.float32] | None, *, sources: int
) -> Statement:
    terms = lens.terms(said.text)
    idf = lens.idf(terms)
    numbers = {term for term in terms if any(character.isdigit() for character in term)}
    support = {number: _support(idf, one, row) for number, one in enumerate(known, 1)}
    floor = FLOOR if row is not None else FLOOR_OF_TERMS
    lacking = {number: numbers - one.terms for number, one in enumerate(known, 1)}
    supporting = tuple(number for number, value in support.items() if value >= floor and not lacking[number])
    best = max(support, key=lambda number: (number in supporting, support[number])) if support else None
    is_supported = bool(set(said.cited) & set(supporting)) if said.cited else bool(supporting)
    return Statement(
        text=said.text, start=said.start, end=said.end, cited=said.cited, supported=is_supported,
        supporting=supporting, by=best, support=support[best] if best else 0.0,
        why="" if is_supported else _why(said.cited, supporting, lacking, sources),
    )  # fmt: skip


def _support(idf: Mapping[str, float], source: _Source, row: NDArray[np.float32] | None) -> float:
    terms = max((coverage(idf, run) for run in source.runs), default=0.0)
    if row is None or source.vectors is None:
        return terms
    return TERMS * terms + COSINE * max(float((source.vectors @ row).max()), 0.0)


def _why(cited: Sequence[int], supporting: Sequence[int], lacking: Mapping[int, set[str]], sources: int) -> str:
    """Why the sentence counts as unsupported, in words."""
    others = ", ".join(f"[Source {number}]" for number in supporting)
    if cited:
        named = " and ".join(f"[Source {number}]" for number in cited)
        missing = sorted(set.intersection(*(lacking[number] for number in cited)))
        verb = "does" if len(cited) == 1 else "do"
        number = f"{named} {verb} not hold {', '.join(missing)}" if missing else f"{named} {verb} not say so"
        return f"{number}; {others} {'does' if len(supporting) == 1 else 'do'}" if others else number
    missing = sorted(set.intersection(*lacking.values())) if lacking else []
    return f"no source holds {', '.join(missing)}" if missing else f"none of the {sources} sources says so"
