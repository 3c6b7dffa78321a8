"""Progress of long work on a terminal's standard error: stage, done of total, rate, time left (owner of rich.progress).

Silent where standard error is no terminal, so that a log holds no carriage return (spec C5), and when quiet.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragcli.cli import inert, streams
from ragcli.types import Event, Listener, ignore_event

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LONGEST_DETAIL = 40  # columns for the name of the file that is being read


@contextmanager
def shown(*, quiet: bool) -> Iterator[Listener]:
    """A listener that draws while the block runs, or one that ignores."""
    if quiet or not streams.messages_are_terminal():
        yield ignore_event
        return
    with _bar() as progress:
        yield _Drawing(progress)


class _Drawing:
    """One line a stage; the line of a stage that ended stays until the end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, event: Event) -> None:
        if event.stage not in self._tasks:
            self._tasks[event.stage] = self._progress.add_task(
                inert.line(event.stage), total=event.total, unit=event.unit, detail=""
            )
        detail = inert.line(event.detail)
        shortened = detail if len(detail) <= LONGEST_DETAIL else "…" + detail[1 - LONGEST_DETAIL :]
        task = self._tasks[event.stage]
        self._progress.update(task, completed=event.done, total=event.total, unit=event.unit, detail=shortened)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Amount(ProgressColumn):
        """Done of total, and how many a second."""

        def render(self, task: Task) -> Text:
            unit, total = task.fields["unit"], task.total
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
