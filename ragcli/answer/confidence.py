"""Is there anything among the hits that an answer could rest on? (spec A10, first cause; case D13)

Vector search finds something for every question, so hits alone say nothing. A question is taken for one that the
documents don't answer when both of its signs are low: the cosine of the best hit, and the share of the question's
terms, by idf, that the best hit holds. `make bench-answers` measures with minilm how many questions are refused of
those that a collection answers, and how many of other collections' questions. Where there are no cosines, half the
share of terms decides alone. An embedder whose cosines are all high never lets it refuse.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ragcli.answer.worth import coverage
from ragcli.options import AnswerSettings
from ragcli.types import Hit, Lens


class Confidence(msgspec.Struct, frozen=True):
    """The signs: the best cosine (None: no hit has one), the best share of terms, and whether they are enough."""

    cosine: float | None
    coverage: float
    is_enough: bool

    @property
    def words(self) -> str:
        """The signs in words."""
        share = f"the nearest source holds {self.coverage:.0%} of the question's terms by weight"
        return share if self.cosine is None else f"{share}, its best cosine is {self.cosine:.2f}"


def confidence(question: str, hits: Sequence[Hit], lens: Lens, settings: AnswerSettings) -> Confidence:
    """What the hits promise for an answer to the question."""
    cosines = [arm.score for hit in hits if (arm := hit.arms.get("dense")) and arm.score is not None]
    cosine = max(cosines, default=None)
    idf = lens.idf(lens.terms(question))
    share = max((coverage(idf, set(lens.terms(_read(hit)))) for hit in hits), default=0.0)
    floor = settings.min_coverage if cosine is not None else settings.min_coverage / 2
    is_near = cosine is not None and cosine >= settings.min_cosine
    return Confidence(cosine, share, bool(hits) and (is_near or share >= floor))


def _read(hit: Hit) -> str:
    """What a search sees of a hit: its text with title, headings and file name."""
    return f"{hit.chunk.context}\n{hit.chunk.text}"
