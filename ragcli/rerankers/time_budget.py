"""The seconds that one judgement may take, over all its requests: `rerank.time_budget_seconds`."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from ragcli.errors import RagcliError

TICK = 0.001  # seconds: a time-out may ring that much too early


class TimeBudget:
    """Runs from `start` on. `seconds` None: there is always time."""

    def __init__(self, seconds: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._now = now
        self._end = inf

    def start(self) -> None:
        """From now on."""
        self._end = inf if self._seconds is None else self._now() + self._seconds

    def left(self) -> float:
        """The seconds that are left; 0 or less where it is over, inf where there is no limit."""
        return self._end - self._now()

    def check(self, judged: int, total: int) -> None:
        """Raises: RagcliError: it is over, and so many of the passages have been judged."""
        if self.left() <= TICK:
            raise RagcliError(
                f"rerank took longer than rerank.time_budget_seconds = {self._seconds:g} "
                f"({judged} of {total} passages judged)",
                "raise it, or lower retrieval.candidate_count",
            )
