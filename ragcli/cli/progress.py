"""Progress of long work on a terminal's standard error: stage, done of total, rate, time left (owner of rich.progress).

Ingest shows a line a stage, from the start; a query only when it takes long, and then the one stage that runs. Silent
where standard error is no terminal, so that a log holds no carriage return (spec C5), and when quiet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

from ragcli.cli import inert, streams
from ragcli.types import Event, Listener, ignore_event

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LONGEST_DETAIL = 40  # columns for the name of the file that is being read
PATIENCE = 0.5  # seconds that a query may take without a word


@contextmanager
def shown(*, quiet: bool) -> Iterator[Listener]:
    """A listener that draws while the block runs, or one that ignores."""
    if quiet or not streams.messages_are_terminal():
        yield ignore_event
        return
    with _bar() as progress:
        yield _Drawing(progress)


@contextmanager
def shown_when_slow(*, quiet: bool, patience: float = PATIENCE) -> Iterator[Listener]:
    """A listener that names the stage that runs, once the block has taken `patience` seconds; or one that ignores."""
    if quiet or not streams.messages_are_terminal():
        yield ignore_event
        return
    drawing = _Waiting(patience)
    try:
        yield drawing
    finally:
        drawing.end()


class _Waiting:
    """One line, of what was heard last. Nothing is drawn, and rich not imported, before the time has come."""

    def __init__(self, patience: float) -> None:
        self._heard = Event(stage="opening")
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._ended = False
        self._lock = Lock()  # the timer has a thread of its own
        self._timer = Timer(patience, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._heard = event
            self._draw()

    def end(self) -> None:
        """Take the line away."""
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._progress is not None:
                self._progress.stop()

    def _begin(self) -> None:
        progress = _bar()
        with self._lock:
            if not self._ended:
                self._progress = progress
                progress.start()
                self._draw()

    def _draw(self) -> None:
        if self._progress is None:
            return
        for stage in [stage for stage in self._tasks if stage != self._heard.stage]:
            self._progress.remove_task(self._tasks.pop(stage))
        _show(self._progress, self._tasks, self._heard)


class _Drawing:
    """One line a stage; the line of a stage that ended stays until the end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        _show(self._progress, self._tasks, event)


def _show(progress: Progress, tasks: dict[str, TaskID], event: Event) -> None:
    """Bring the line of the event's stage up to date; a new one where it has none."""
    if event.stage not in tasks:
        tasks[event.stage] = progress.add_task(inert.line(event.stage), total=event.total, unit=event.unit, detail="")
    detail = inert.line(event.detail)
    shortened = detail if len(detail) <= LONGEST_DETAIL else "…" + detail[1 - LONGEST_DETAIL :]
    progress.update(tasks[event.stage], completed=event.done, total=event.total, unit=event.unit, detail=shortened)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Amount(ProgressColumn):
        """Done of total, and how many a second."""

        def render(self, task: Task) -> Text:
            unit, total = task.fields["unit"], task.total
            if total is None and not unit:
                return Text()
            done = (
                _amount(task.completed, unit)
                if total is None
                else f"{_count(task.completed, unit)}/{_amount(total, unit)}"
            )
            rate = f"  {_amount(task.speed, unit)}/s" if task.speed else ""
            return Text(f"{done}{rate}")

    detail = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        Amount(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[detail]}", markup=False, table_column=detail),
    )
    return Progress(*columns, console=Console(stderr=True, highlight=False), transient=True, expand=True)


def _amount(count: float, unit: str) -> str:
    return f"{_count(count, unit)} {'MB' if unit == 'bytes' else unit}".rstrip()


def _count(count: float, unit: str) -> str:
    return f"{count / 1e6:.1f}" if unit == "bytes" else f"{count:,.0f}"
