"""Runs a backfill to its end: rounds over the whole table, each by the workers of resizes."""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

from dynashard.backfills.movements import Movements, version_of
from dynashard.backfills.runs import Run, Runs, key_of
from dynashard.backfills.work import BackfillWork, Unfit
from dynashard.errors import TopologyChangedError
from dynashard.repository import Store
from dynashard.resharding.job import Assignment
from dynashard.resharding.pace import Pace, Speed
from dynashard.resharding.progress import Pass, Progress, ProgressTable, open_tasks
from dynashard.resharding.rates import Rate
from dynashard.resharding.share import SHARD_READ_UNITS, SHARD_WRITE_UNITS
from dynashard.resharding.sources import Sources
from dynashard.resharding.worker import Slice, Task
from dynashard.runtime import Runtime
from dynashard.topology import DEFAULT_LEASE, Record, TopologyTable, family_of
from dynashard.transport.interface import Transport
from dynashard.transport.paging import segments

_WIDTH: Final = 16
_SHARE: Final = 0.4
"""What one worker may take of what a partition of the table gives. An index build writes half of that to the index."""
_MOST_WORKERS: Final = 16
_TASKS_OF_WORKER: Final = 4
"""Segments for each worker, so that all work until the end although segments are of different sizes."""


@dataclass(frozen=True, slots=True)
class Options:
    """How fast a backfill may work.

    Attributes:
        write_units, read_units: the most that it consumes in a second.
        workers: how many segments of the table are worked on at a time. By default as many as share the units so that
            none takes more than two fifths of what a partition gives; one of them reads the table from start to end.
        tasks: into how many segments the table is divided; by default one, or four for each of several workers.
        seconds: how long a segment is worked on before progress is reported.
        chunk: how many items are read at a time at most. Fewer are read if each needs a write.
        lease: with which a family's record is created if there is none, in seconds.
    """

    write_units: float = _SHARE * SHARD_WRITE_UNITS
    read_units: float = _SHARE * SHARD_READ_UNITS
    workers: int | None = None
    tasks: int | None = None
    seconds: float = 2.0
    chunk: int = 200
    lease: float = DEFAULT_LEASE

    @property
    def at_a_time(self) -> int:
        """How many segments are worked on at a time."""
        writing = self.write_units / (_SHARE * SHARD_WRITE_UNITS)
        reading = self.read_units / (_SHARE * SHARD_READ_UNITS)
        return self.workers or min(_MOST_WORKERS, ceil(max(writing, reading)))

    @property
    def segments(self) -> int:
        """Into how many segments the table is divided."""
        return self.tasks or (1 if self.at_a_time == 1 else _TASKS_OF_WORKER * self.at_a_time)


@dataclass(frozen=True, slots=True)
class Report:
    """How far a backfill has come.

    Attributes:
        written: items that were written.
        left: items that stay as they are, because they do not fit their declaration; `unfit` names the first ones.
        rounds: how often the table was read, because items moved meanwhile.
        done_tasks, tasks: segments of the table that are complete in this round, and all.
        waiting: whether it waits for the shard count of the family, which is changing.
        complete: whether it has ended and recorded that.
        read_units, write_units: consumed in this round, over all processes that took part.
    """

    written: int = 0
    left: int = 0
    rounds: int = 0
    done_tasks: int = 0
    tasks: int = 0
    waiting: bool = False
    complete: bool = False
    read_units: float = 0.0
    write_units: float = 0.0
    unfit: tuple[Unfit, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the workers work."""

    transport: Transport
    table: str
    progress: ProgressTable
    runtime: Runtime


class Backfill:
    """One backfill of an entity, which any number of processes may run at the same time.

    Args:
        store: the items.
        topology_table: where progress and completion are kept.
        work: what is done with each item.
        options: how fast.
    """

    def __init__(self, store: Store, topology_table: str, work: BackfillWork, options: Options | None = None) -> None:
        self._store, self._work = store, work
        self._options = options or Options()
        self._topology = TopologyTable(store.transport, topology_table)
        self._runs = Runs(store.transport, topology_table)
        progress = ProgressTable(store.transport, topology_table)
        self._place = _Place(store.transport, store.table, progress, store.runtime)
        self._family = family_of(work.entity)
        self._movements = Movements(self._topology, work.entity, store.runtime, lease=self._options.lease)

    def run(
        self,
        advance: Callable[[Report], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        *,
        restart: bool = False,
    ) -> Report:
        """Run it until it is complete, or until `stop` returns true; go on where an earlier one was killed.

        With `restart` it begins anew: an earlier one does not count if processes of an earlier release ran since.

        Returns what was done in the present round; `advance` gets the same now and then. It is not complete if items
        were left that it needs.

        Raises `EngineError` if a request failed for good; it may be run again.

        Cost: a consistent read of the table for each round, 1 read unit for every 4 KB; what its writes cost; and 1
        write unit for every second of each worker.
        """
        if restart and (known := self._runs.find(self._work.goal)) is not None:
            self._forget(known)
        while not stop():
            family = self._settled(advance, stop)
            if family is None:
                break
            run = self._begun(family)
            self._round(run, advance, stop)
            if stop():
                break
            report = self._report(run)
            if report.done_tasks < report.tasks:
                continue
            if report.left and self._work.needs_all:
                # The next run reads all of it again.
                self._forget(run)
                return report
            if self._complete(run, family):
                self._forget(run)
                return self._report(run, complete=True, of=report)
        run_now = self._runs.find(self._work.goal)
        return Report() if run_now is None else self._report(run_now)

    def _settled(self, advance: Callable[[Report], None], stop: Callable[[], bool]) -> Record | None:
        def wait() -> bool:
            advance(Report(waiting=True))
            return not stop()

        return self._movements.settled(wait)

    def _begun(self, family: Record) -> Run:
        """Return the round to work on: the one that was begun, or the next if items may have moved since."""
        goal, version = self._work.goal, version_of(family)
        run = self._runs.find(goal)
        if run is None:
            now = int(self._store.runtime.clock())
            run = Run(key_of(goal), secrets.token_urlsafe(9), goal.value, self._options.segments, version, started=now)
        elif run.family == version or not self._movements.possible:
            return run
        else:
            run = run.next(version, self._report(run).written)
        self._runs.save(goal, run)
        return run

    def _round(self, run: Run, advance: Callable[[Report], None], stop: Callable[[], bool]) -> None:
        """Work on all tasks of a round until they are complete, or the round is over."""
        options, speed = self._options, Speed()
        guard = _Guard(self._movements, run, self._store.runtime)
        workers = min(options.at_a_time, run.tasks)
        rate = Rate(options.write_units / workers, options.read_units / workers, self._work.write_units)
        calls = segments({"TableName": self._store.table, **self._work.reading}, run.tasks)
        runtime = self._store.runtime
        paces = [Pace(rate, width=_WIDTH, table=speed, runtime=runtime, most=options.chunk) for _ in calls]

        def worked(number: int) -> bool:
            sources = Sources(self._place, [calls[number]])
            task = Task(number=number, work=self._work, sources=sources, pace=paces[number])
            return Slice(self._place, guard, run, task).run(options.seconds)

        left = _apart(open_tasks(self._progress(run), Pass.BACKFILL, run.tasks), workers)
        with ThreadPoolExecutor(workers, thread_name_prefix="backfill") as pool:
            while left and not stop() and guard.holds(run):
                batch, later = left[:workers], left[workers:]
                ended = list(pool.map(worked, batch))
                left = [number for number, done in zip(batch, ended, strict=True) if not done] + later
                advance(self._report(run))

    def _progress(self, run: Run) -> list[Progress]:
        return self._place.progress.of(run.key, run.id, run.tasks)

    def _report(self, run: Run, *, complete: bool = False, of: Report | None = None) -> Report:
        progress = [] if of is not None else self._progress(run)
        found = of or Report(
            written=run.moved + sum(each.moved for each in progress),
            left=sum(each.left for each in progress),
            rounds=run.number,
            done_tasks=run.tasks - len(open_tasks(progress, Pass.BACKFILL, run.tasks)),
            tasks=run.tasks,
            read_units=round(sum(each.read_units for each in progress), 3),
            write_units=round(sum(each.write_units for each in progress), 3),
            unfit=tuple(self._work.unfit.values()),
        )
        values: dict[str, Any] = {name: getattr(found, name) for name in Report.__dataclass_fields__}
        return Report(**{**values, "complete": complete})

    def _complete(self, run: Run, family: Record) -> bool:
        """Record that the goal is reached, if nothing can have moved since the round began; return whether it is."""
        goal = self._work.goal
        if self._movements.possible and version_of(family) != run.family:
            return False
        now = self._store.runtime.clock()
        done = family.revised(now, backfilled={**family.backfilled, goal.key: goal.value})
        try:
            self._topology.save((family, done))
        except TopologyChangedError:
            # The record is read again: if items may have moved, another round begins, and else nothing is left of this.
            return False
        return True

    def _forget(self, run: Run) -> None:
        self._runs.clear(self._work.goal)
        self._place.progress.clear(run.key, run.id, run.tasks)


def _apart(tasks: Sequence[int], workers: int) -> list[int]:
    """Order segments so that those that are worked on at a time are far apart, mostly in different partitions."""
    step = ceil(len(tasks) / workers)
    return [task for first in range(step) for task in tasks[first::step]]


class _Guard:
    """Ends a round when items may begin to move. Looks now and then."""

    def __init__(self, movements: Movements, run: Run, runtime: Runtime) -> None:
        self._movements, self._run, self._runtime = movements, run, runtime
        self._until = float("-inf")
        self._known = True

    def holds(self, _: Assignment, /) -> bool:
        """Whether the round is still to be worked on. Cost: 1 round trip, 1 read unit, every five seconds."""
        now = self._runtime.clock()
        if not now < self._until:
            self._known = not self._movements.since(self._run.family)
            self._until = now + _RECHECK
        return self._known


_RECHECK: Final = 5.0
"""Seconds after which the record of the family is read again."""
