"""Watching changes until they are over: a bar for each on a terminal, a line for each stage elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from dynashard.resharding import Status
from tools.reshard.scopes import arguments
from tools.reshard.words import GRACE, amounts, change, left, overdue, stage

_EVERY: Final = 1.0
"""Seconds between two looks."""

Show = Callable[[Sequence[Status]], None]


class Watch:
    """Looks at changes once a second.

    Args:
        look: gives what there is to see.
        show: shows it.
        worker: where the worker is, for those who miss it.
        clock: in epoch seconds.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        look: Callable[[], Sequence[Status]],
        show: Show,
        *,
        worker: str,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._look = look
        self._show = show
        self._worker = worker
        self._clock = clock
        self._sleep = sleep
        self._seen: dict[str, tuple[object, float]] = {}
        self._told = False

    def until(self, over: Callable[[Sequence[Status]], bool]) -> Sequence[Status]:
        """Watch until `over` says so; what was seen last.

        Raises:
            EngineError: looking failed.
        """
        while True:
            seen = self._look()
            self._show(seen)
            if over(seen):
                return seen
            if not self._told and any(self._stands_still(status) for status in seen):
                self._told = True
                tell_no_worker(self._worker)
            self._sleep(_EVERY)

    def _stands_still(self, status: Status) -> bool:
        """Whether nothing has happened for longer than any step takes."""
        now = self._clock()
        here = (status.stage, status.since, status.moved, status.swept_marks, status.read_units, status.paused)
        before, since = self._seen.get(status.key, (None, now))
        if here != before:
            self._seen[status.key] = (here, now)
            since = now
        if overdue(status, now):
            return True
        return status.busy and not status.paused and now - since > status.wait + GRACE


def tell_no_worker(worker: str) -> None:
    """Say that nobody seems to carry changes out."""
    typer.echo(f"no worker seems to run: the next step is overdue. {worker[0].upper()}{worker[1:]}", err=True)


@contextmanager
def showing() -> Iterator[Show]:
    """What shows changes on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().show
        return
    columns = (
        TextColumn("{task.description}"),
        TextColumn("{task.fields[stage]}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[done]}"),
        TextColumn("{task.fields[left]}"),
    )
    # Names are shown as they are: rich would take some for markup.
    with Progress(*(_plain(column) for column in columns), console=console) as progress:
        yield _Bars(progress).show


def _plain(column: BarColumn | TextColumn) -> BarColumn | TextColumn:
    if isinstance(column, TextColumn):
        column.markup = False
    return column


class _Lines:
    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def show(self, seen: Sequence[Status]) -> None:
        for status in seen:
            said = f"{arguments(status)}: {change(status)}; {stage(status)}"
            if self._last.get(status.key) != said:
                self._last[status.key] = said
                typer.echo(said, err=True)


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def show(self, seen: Sequence[Status]) -> None:
        for status in seen:
            said, done, rest = stage(status), amounts(status), left(status)
            name = f"{arguments(status)}: {change(status)}"
            total, completed = bar_of(status)
            task = self._tasks.get(status.key)
            if task is None:
                task = self._tasks[status.key] = self._progress.add_task(name, total=None, stage="", done="", left="")
            self._progress.update(
                task, description=name, total=total, completed=completed, stage=said, done=done, left=rest
            )
        self._progress.refresh()


def bar_of(status: Status) -> tuple[int | None, int]:
    """How long the bar is and how much of it is filled; without a length it moves to and fro."""
    if status.stage == "stable":
        return 1, 1
    if status.stage == "sweep" and status.moved:
        return status.moved, min(status.swept_marks, status.moved)
    if status.stage in {"move", "settle"} and status.total:
        return status.total, status.total if status.stage == "settle" else status.moved
    return None, 0
