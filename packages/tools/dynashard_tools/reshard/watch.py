"""Watches resizes until they end, with a bar for each on a terminal, and lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from dynashard.errors import DynashardError
from dynashard.resharding import Resharder, Status
from dynashard_tools.connection import Backend
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.reshard.description import GRACE, amounts, arguments, left, overdue, resize, shards, stage

_EVERY: Final = 1.0
"""Seconds between two polls."""
_FAILURES: Final = 30
"""How many polls in a row may fail without ending the watch, for example while the table is throttled."""
_HINT: Final = "the resizes continue. `dynashard reshard status --watch` watches them"
_DRIVEN_HINT: Final = "the resizes stay where they are. `dynashard reshard work` continues them"

Show = Callable[[Sequence[Status]], None]


def wait_for(backend: Backend, resharder: Resharder, begun: Sequence[Status], to: int) -> Sequence[Status]:
    """Wait until all of these resizes have reached their count; where this process drives them, until they ended.

    Raises:
        CommandError: one was called off, or has failed.
        CommandInterruptedError: Ctrl-C; the resizes continue.
    """
    scopes = [resharder.scope(each.key) for each in begun]

    def poll() -> Sequence[Status]:
        return [resharder.status(scope) for scope in scopes]

    def over(seen: Sequence[Status]) -> bool:
        for each in seen:
            _require_reachable(each, to)
        ended = not (backend.drives and any(each.busy for each in seen))
        return ended and all(each.target is None and each.count == to for each in seen)

    return watch_until(backend, poll, over)


def _require_reachable(status: Status, to: int) -> None:
    name = arguments(status)
    if status.back_to is not None or (status.target is None and status.count != to):
        back = status.count if status.back_to is None else status.back_to
        raise CommandError(f"{name}: the resize to {shards(to)} was called off; it ends with {shards(back)}")
    if status.paused and status.error:
        raise CommandError(f"{name}: {status.error}. When the cause is fixed: `dynashard reshard resume {name}`")


def watch_until(
    backend: Backend,
    poll: Callable[[], Sequence[Status]],
    over: Callable[[Sequence[Status]], bool],
    *,
    show: Show | None = None,
) -> Sequence[Status]:
    """Watch until `over` returns true; `show` replaces what is shown on standard error.

    Raises:
        CommandInterruptedError: Ctrl-C; the resizes continue.
        CommandError: the table did not answer any more; so they do then.
    """
    hint = _DRIVEN_HINT if backend.drives else _HINT
    with (
        on_interrupt(lambda: f"{hint}, `dynashard reshard abort` takes one back"),
        nullcontext(show) if show else _shown() as shown,
    ):
        try:
            return Watch(poll, shown, worker=backend.worker).until(over)
        except DynashardError as error:
            if not error.retryable:
                raise
            raise CommandError(f"{str(error).removesuffix('.')}; {hint} ({error.code})") from error


@dataclass
class Watch:
    """Polls resizes once a second, and shows them. `worker` is for the message that no worker seems to run."""

    poll: Callable[[], Sequence[Status]]
    show: Show
    worker: str
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _seen: dict[str, tuple[object, float]] = field(default_factory=dict)

    def until(self, over: Callable[[Sequence[Status]], bool]) -> Sequence[Status]:
        """Poll until `over` returns true. Return what was seen last.

        Raises the error of a poll that cannot succeed later, or of the last of many polls in a row that failed.
        """
        reported, failures = False, 0
        while True:
            try:
                seen = self.poll()
            except DynashardError as error:
                failures += 1
                if not error.retryable or failures > _FAILURES:
                    raise
                self.sleep(_EVERY)
                continue
            failures = 0
            self.show(seen)
            if over(seen):
                return seen
            if not reported and any(self._stands_still(status) for status in seen):
                reported = True
                report_no_worker(self.worker)
            self.sleep(_EVERY)

    def _stands_still(self, status: Status) -> bool:
        """Whether nothing has happened for longer than any step takes."""
        now = self.clock()
        here = (status.stage, status.since, status.moved, status.swept_marks, status.read_units, status.paused)
        before, since = self._seen.get(status.key, (None, now))
        if here != before:
            self._seen[status.key] = (here, now)
            since = now
        if overdue(status, now):
            return True
        return status.busy and not status.paused and now - since > status.wait + GRACE


def report_no_worker(worker: str) -> None:
    """Print that no worker seems to carry resizes out."""
    typer.echo(f"no worker seems to run: the next step is overdue. {worker[0].upper()}{worker[1:]}", err=True)


@contextmanager
def _shown() -> Iterator[Show]:
    """Show resizes on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().show
        return
    # Without markup, because rich would take parts of some names for it.
    texts = [TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[stage]")]
    more = [TextColumn(f"{{task.fields[{name}]}}", markup=False) for name in ("done", "left")]
    with Progress(*texts, BarColumn(bar_width=20), *more, console=console) as progress:
        yield _Bars(progress).show


class _Lines:
    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def show(self, seen: Sequence[Status]) -> None:
        for status in seen:
            line = f"{arguments(status)}: {resize(status)}; {stage(status)}"
            if self._last.get(status.key) != line:
                self._last[status.key] = line
                typer.echo(line, err=True)


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def show(self, seen: Sequence[Status]) -> None:
        for status in seen:
            name = f"{arguments(status)}: {resize(status)}"
            if status.key not in self._tasks:
                self._tasks[status.key] = self._progress.add_task(name, total=None, stage="", done="", left="")
            total, completed = bar_of(status)
            self._progress.update(
                self._tasks[status.key],
                description=name,
                total=total,
                completed=completed,
                stage=stage(status),
                done=amounts(status),
                left=left(status),
            )
        self._progress.refresh()


def bar_of(status: Status) -> tuple[int | None, int]:
    """Return the length of the bar and how much of it is filled; without a length it pulsates."""
    if status.stage == "stable":
        return 1, 1
    if status.stage == "sweep" and status.moved:
        return status.moved, min(status.swept_marks, status.moved)
    if status.stage in {"move", "settle"} and status.total:
        return status.total, status.total if status.stage == "settle" else status.moved
    return None, 0
