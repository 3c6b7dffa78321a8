"""Results built by hand, for the tests of what is drawn and written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from ragcli.types import ArmScore, Chunk, Drop, Hit, Ranking, Result, Step, Trace

TEXT = "Reset the torque sensor.\nHold the button for five seconds."


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
        arms={"bm25": ArmScore(1, score)},
        terms={"torque": score - 1.0, "sensor": 1.0},
        stale=stale,
    )


def result(*hits: Hit, query: str = "torque sensor", dropped: tuple[Drop, ...] = (), **changes: Any) -> Result:
    trace = Trace(query, (Step("bm25", 7, len(hits), 0.0025),))
    known: dict[str, Any] = {"query": query, "mode": "keyword", "ranking": Ranking(hits, dropped), "trace": trace}
    return Result(**(known | changes))
