"""Time that stands still, for tests of what waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ragcli.models.http import Clock


class Time:
    """A clock that only waiting moves on; chance is always a half, so a pause is three quarters of its longest."""

    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        self.at = 0.0
        self.slept: list[float] = []
        self._wall = wall or (lambda: self.at)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.slept.append(seconds)
        self.at += seconds
        return event.is_set()

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.at, wall=self._wall, wait=self.wait, random=lambda: 0.5)
