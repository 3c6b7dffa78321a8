"""Results built by hand, for the tests of what is drawn and written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

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
