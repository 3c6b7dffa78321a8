"""Results built by hand, for the tests of what is drawn and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from msgspec.structs import replace

from ragcli.types import ArmScore, Chunk, Drop, Hit, Ranking, Result, Step, Trace

TEXT = "Reset the torque sensor.\nHold the button for five seconds."
ARMS = (
    Step("bm25", 700, 100, 0.002, {"k": 100, "k1": 1.5, "b": 0.75, "terms": ("torque", "sensor")}),
    Step("dense", 690, 100, 0.004, {"k": 100, "min_score": 0.0, "exact": True}),
)


def chunk(text: str = TEXT, **changes: Any) -> Chunk:
    known: dict[str, Any] = {
        "document_id": "handbook/leave.md",
        "index": 3,
        "start": 100,
        "end": 100 + len(text),
        "text": text,
        "start_line": 12,
        "end_line": 13,
        "heading": "Reset",
        "path": "handbook/leave.md",
        "metadata": {"lang": "de", "year": 2024, "day": date(2024, 5, 1), "at": datetime(2024, 5, 1, 10, tzinfo=UTC)},
    }
    return Chunk(**(known | changes))


def hit(text: str = TEXT, *, score: float = 2.5, stale: str | None = None, **changes: Any) -> Hit:
    return Hit(
        chunk=chunk(text, **changes),
        score=score,
        score_kind="bm25",
        arms={"bm25": ArmScore(1, score, score)},
        terms={"torque": score - 1.0, "sensor": 1.0},
        stale=stale,
    )


def result(*hits: Hit, query: str = "torque sensor", dropped: tuple[Drop, ...] = (), **changes: Any) -> Result:
    trace = Trace(query, (Step("bm25", 7, len(hits), 0.0025),))
    known: dict[str, Any] = {"query": query, "mode": "keyword", "ranking": Ranking(hits, dropped), "trace": trace}
    return Result(**(known | changes))


def fused(
    score: float, kind: str, arms: dict[str, ArmScore], *, terms: dict[str, float] | None = None, **changes: Any
) -> Hit:
    """A hit of hybrid search; its arms' parts must add up to `score`."""
    normalized = changes.pop("normalized", None)
    return Hit(
        chunk=chunk(**changes), score=score, score_kind=kind, arms=arms, terms=terms or {}, normalized=normalized
    )


def hybrid(*hits: Hit, options: Mapping[str, object], arms: tuple[Step, ...] = ARMS) -> Result:
    """A result of hybrid search, with the trace that it leaves: both arms, then their fusion with `options`."""
    fusion = Step("fusion", 150, len(hits), 0.0001, options)
    return result(*hits, mode="hybrid", trace=Trace("torque sensor", (*arms, fusion)))


FUSION = {"method": "relative", "weights": {"bm25": 0.5, "dense": 0.5}}
LETTERS = "abcdef"


def found(letter: str, **changes: Any) -> Hit:
    """The candidate of that letter: `a.md#0` is ranked first and has 0.9, `f.md#5` last and has 0.4."""
    index = LETTERS.index(letter)
    part = (9 - index) / 20
    arms = {"bm25": ArmScore(index + 1, 9.0 - index, part), "dense": ArmScore(6 - index, 0.5, part)}
    return fused(2 * part, "relative", arms, document_id=f"{letter}.md", path=f"{letter}.md", index=index, **changes)


def step(stage: str, taken: str, given: str, **options: object) -> Step:
    """A stage that got the candidates of some letters and gave those of others, in that order."""
    order = tuple((f"{letter}.md", LETTERS.index(letter)) for letter in given)
    return Step(stage, len(taken), len(given), 0.0004, options, (), order)


def picked(letter: str, relevance: float, likeness: float, note: str = "") -> Hit:
    return found(letter).rescored("mmr", "mmr", {"relevance": relevance, "likeness": likeness}, note)


def staged(*, reordered: bool = True) -> Result:
    """Six candidates: b is dropped as a twin of a, MMR picks a, e, c, d and not f, a budget drops d; a, c, e are shown.

    By relevance they are a, e, c; MMR's score of c lies above that of e.
    """
    hits = [
        picked("a", 0.45, 0.0),
        picked("e", 0.25, -0.05, "most like a.md#0, cosine 0.1"),
        picked("c", 0.35, -0.125, "most like a.md#0, cosine 0.25"),
    ]
    dropped = (
        Drop(found("b"), "redundancy", "cosine 0.97 with a.md#0, at or above 0.95"),
        Drop(found("f"), "mmr", "not among the 4 that were picked"),
        Drop(picked("d", 0.3, -0.18), "budget", "needs 300 tokens, 120 are left"),
    )
    steps = [
        step("redundancy", "abcdef", "acdef", threshold=0.95),
        step("mmr", "acdef", "aecd", picks=4, candidates=15, **{"lambda": 0.5}),
        step("cut", "aecd", "aecd", top_k=4),
        step("budget", "aecd", "aec", max_tokens=1000),
    ]
    if reordered:
        first, second, third = (replace(one, rank=rank) for rank, one in enumerate(hits, 1))
        hits = [first, third, second]
        steps.append(step("reorder", "aec", "ace"))
    return of_stages(hits, steps, dropped)


def of_stages(hits: Sequence[Hit], steps: Sequence[Step], dropped: tuple[Drop, ...] = ()) -> Result:
    """A result of hybrid search with stages behind the fusion."""
    fusion = Step("fusion", 150, 6, 0.0001, FUSION)
    return result(*hits, mode="hybrid", dropped=dropped, trace=Trace("torque sensor", (*ARMS, fusion, *steps)))
