"""Why a result is empty, or smaller than the page that was asked for: notes for people (spec R8: nothing in silence).

Reads what one retrieval left, and asks the index for the rest; changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from ragcli.options import RetrievalOptions
from ragcli.types import Drop, Ranking, Step

if TYPE_CHECKING:
    from ragcli.store.sqlite.store import SqliteStore

NAMED = 10  # unknown terms that a note lists
NO_WORD = "no document that meets the filters holds any of the query's terms"
HYBRID = {"bm25", "dense"}


class Looked(msgspec.Struct, frozen=True):
    """What one retrieval did: the query's terms, the arms that ran, the steps, and how many candidates it looked at.

    `is_all`: no further ones would have been looked at, however many were asked for. `most` is the bound of that.
    """

    terms: Sequence[str]
    arms: Collection[str]
    steps: Sequence[Step]
    candidates: int
    most: int


def notes(store: SqliteStore, options: RetrievalOptions, looked: Looked, ranking: Ranking) -> tuple[str, ...]:
    """Why there is nothing, or less than a page where stages dropped hits; and where words had no part in it."""
    if not ranking.hits and not ranking.dropped:
        return tuple(_why_nothing(store, options, looked))
    if len(ranking.hits) < options.top_k and ranking.dropped:
        return tuple(_why_short(looked, ranking))
    return tuple(_without_words(store, looked))


def _why_short(looked: Looked, ranking: Ranking) -> list[str]:
    if looked.candidates >= looked.most:
        return [f"only the best {looked.candidates} candidates were looked at; {_counted(ranking.dropped)}"]
    if ranking.hits and any(drop.stage == "parents" for drop in ranking.dropped):
        return [f"the {looked.candidates} candidates lie in {len(ranking.hits)} parents: --candidates N looks at more"]
    return [] if ranking.hits else [_counted(ranking.dropped)]


def _counted(dropped: Sequence[Drop]) -> str:
    counts = Counter(drop.stage for drop in dropped)
    return "dropped: " + ", ".join(f"{count} by {stage}" for stage, count in counts.items())


def _without_words(store: SqliteStore, looked: Looked) -> list[str]:
    """That a hybrid ranking is by meaning alone, since no term of the query is in the index."""
    if set(looked.arms) != HYBRID or any(step.stage == "bm25" and step.given for step in looked.steps):
        return []
    reason = _unknown(store, looked.terms) or "no chunk that may be found holds a word of the query"
    return [f"ranked by meaning alone: {reason}"]


def _why_nothing(store: SqliteStore, options: RetrievalOptions, looked: Looked) -> list[str]:
    if not store.size():
        return ["the index holds no chunks"]
    conditions = options.metadata_filter
    if conditions and not store.admitted(conditions):
        return _why_nothing_admitted(store, options) or ["no document meets all filters"]
    reasons = [_unknown(store, looked.terms) or NO_WORD] if "bm25" in looked.arms else []
    if "dense" in looked.arms and store.vector_count():
        reasons.append(f"no chunk has a cosine of retrieval.min_score = {options.min_score:g} or more")
    return reasons


def _unknown(store: SqliteStore, terms: Sequence[str]) -> str:
    """What there is to say of terms that are not in the index; "" when all are."""
    if not terms:
        return "the query has no terms: no letters or digits that are not stop words"
    distinct = list(dict.fromkeys(terms))
    known = store.known(distinct)
    unknown = [term for term in distinct if term not in known]
    more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    return f"not in the index: {', '.join(_short(term) for term in unknown[:NAMED])}{more}" if unknown else ""


def _short(term: str) -> str:
    return term if len(term) <= 40 else f"{term[:40]}…"


def _why_nothing_admitted(store: SqliteStore, options: RetrievalOptions) -> list[str]:
    from ragcli.filters import explain_mismatch

    kinds = store.kinds()
    reasons = (explain_mismatch(condition, kinds) for condition in options.metadata_filter)
    return [reason for reason in reasons if reason]
