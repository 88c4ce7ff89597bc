"""The entry point for operators, drivers and policies: start a resize, follow it, and carry it out."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.errors import ClockOffError, EngineError, InvalidValueError, ReshardRefusedError, TopologyChangedError
from dynashard.resharding import resize_requests
from dynashard.resharding.checks import under_way
from dynashard.resharding.context import Context
from dynashard.resharding.controller import advance
from dynashard.resharding.estimate import Estimate
from dynashard.resharding.forecast import course_of, share_of
from dynashard.resharding.guard import Guard
from dynashard.resharding.job import Job
from dynashard.resharding.mover import TakenError
from dynashard.resharding.pace import Pace, Speed
from dynashard.resharding.progress import Pass, ProgressTable
from dynashard.resharding.relocation import Homes
from dynashard.resharding.scope import Family, Scope
from dynashard.resharding.share import Share
from dynashard.resharding.status import Status, Step, status_of
from dynashard.resharding.timing import Timing
from dynashard.resharding.worker import Slice, task_of
from dynashard.runtime import SYSTEM, Runtime
from dynashard.topology import Record, TopologyTable, family_of
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Transport

_TIMING: Final = Timing()
_SHARE: Final = Share()
MOST_SECONDS: Final = 600.0
"""How long a resize may be expected to take that starts by itself and moves items."""
_WIDTH: Final = 16
"""Writes of a task that are under way at a time."""


class Resharder:
    """Changes shard counts while traffic flows. Keeps only caches; safe to share between threads.

    It needs all `entities` that share logical partitions with one of them, and a `timing` of not less than what clients
    are given. Drivers work on `concurrency` tasks at a time, among which a budget is divided. Work on the whole table,
    which a resize of a family or an index takes, is divided into `segments`.

    A resize takes no more than `share` of the units of each shard, unless its request names another part. One that the
    growth policy has requested is declined if items move and it is expected to take longer than `most_seconds`; None
    for no such bound.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        table: str,
        topology_table: str,
        entities: Sequence[type[Entity]],
        timing: Timing = _TIMING,
        runtime: Runtime = SYSTEM,
        new_id: Callable[[], str] = lambda: secrets.token_urlsafe(9),
        concurrency: int = 4,
        segments: int = 16,
        share: Share = _SHARE,
        most_seconds: float | None = MOST_SECONDS,
    ) -> None:
        self.runtime = runtime
        self.topology = TopologyTable(transport, topology_table)
        self.entities = [definition(entity) for entity in entities]
        self._context = Context(
            transport=transport,
            table=table,
            topology=self.topology,
            progress=ProgressTable(transport, topology_table),
            families=_families(self.entities),
            timing=timing,
            runtime=runtime,
            new_id=new_id,
            concurrency=concurrency,
            segments=segments,
            share=share,
            most_seconds=most_seconds,
        )
        self._table_speed = Speed()
        self._paces: dict[tuple[str, int], Pace] = {}
        self._homes: dict[str, Homes] = {}
        self._lock = own_lock(self)

    def scope(self, key: str) -> Scope:
        """Return the scope of a record's key; raises `ConfigurationError` for one of an unknown entity."""
        return Scope.of_key(key, self.entities)

    def start(
        self,
        scope: Scope,
        to: int,
        *,
        budget: float | None = None,
        share: float | None = None,
        cause: str = "operator",
        survey: bool = True,
        creating: float = 0.0,
        rewrite: bool | None = None,
    ) -> Status:
        """Request another shard count and return; a driver carries the resize out.

        Args:
            scope: what to change.
            to: the new count, a power of two up to 1024.
            budget: write units a second that moving and sweeping may take; None for no bound besides the share.
            share: the part of each shard's units that the resize may take; None for the worker's setting.
            cause: why, for the status. One that the growth policy gives, `throttle` or `quiet`, may be declined.
            survey: count the items to move during the first wait, for the progress bar; half a read unit for 4 KB.
            creating: the share of a shard's write units with which callers create items, for the judgement whether the
                resize ends in time.
            rewrite: of an index that grows, or grew before: give its older entries places of the new count. Otherwise
                the count holds for new entries alone: nothing is written, and readers look in both places until a
                resize to the same count rewrites. Fewer shards, and read replicas, are always rewritten.

        Raises:
            ReshardRefusedError: it is not possible, or not now; `reason` is one of not_power_of_two, same_count,
                running, not_swept, unknown_partition, fixed_placement, too_many, unsharded, index_busy, table_busy,
                family_busy, epochs, too_many_epochs, not_rewritten, parts_only_grow.
            InvalidValueError: a budget that is not above 0, or a share that is not above 0 and up to 1.
            ClockOffError: the count would depend on the time of keys, and this process's clock is off.

        Cost: 3 round trips, 3 read units, 4 write units.
        """
        if not isinstance(scope, Scope):
            shown = f"the class {scope.__name__}" if isinstance(scope, type) else f"a {type(scope).__name__}"
            raise InvalidValueError(f"start takes what to resize; it got {shown}; write Scope(definition(User))")
        if not isinstance(to, int) or isinstance(to, bool):
            raise InvalidValueError(f"the new count is {to!r}; write a number, such as 8")
        options = resize_requests.ResizeOptions(budget, share, cause, survey, creating, rewrite)
        resize_requests.start(self._context, scope, to, options)
        if scope.time is not None:
            # The wait for an epoch begins when it is seen stored. What fails here, a driver does later.
            with suppress(ClockOffError, EngineError, TopologyChangedError):
                self.advance(scope.key)
        return self.status(scope)

    def estimate(
        self,
        scope: Scope,
        to: int,
        *,
        budget: float | None = None,
        share: float | None = None,
        rewrite: bool | None = None,
    ) -> Estimate:
        """Return what a resize to another count would take: items, units, dollars and seconds.

        Arguments as of `start`. Items that callers create meanwhile are not included.

        Raises:
            ReshardRefusedError: as `start`.
            InvalidValueError: as `start`.
            EngineError: the shards or the table cannot be read.

        Cost: at most 8,192 read units, mostly a few; see `stored_amount`. At no more than the mover's share.
        """
        options = resize_requests.ResizeOptions(budget, share, rewrite=rewrite)
        return resize_requests.estimate(self._context, scope, to, options)

    def abort(self, scope: Scope) -> Status:
        """Abort a resize. Cost: 3 round trips, 3 read units, 1 write unit.

        Before its MOVE phase it ends at once, and no item was moved. After that it is completed and swept, and then
        the count is changed back: see `Status.back_to`.

        An epoch can be taken back until it is confirmed.

        Raises `ReshardRefusedError`: not_running, confirmed.
        """
        resize_requests.abort(self._context, scope)
        return self.status(scope)

    def pause(self, scope: Scope, *, error: str | None = None) -> Status:
        """Pause a resize, because of an error if given; workers stop within seconds. Raises, costs: as `abort`."""
        resize_requests.pause(self._context, scope, paused=True, error=error)
        return self.status(scope)

    def resume(self, scope: Scope) -> Status:
        """Resume a paused resize. Raises, costs: as `abort`."""
        resize_requests.pause(self._context, scope, paused=False)
        return self.status(scope)

    def status(self, scope: Scope) -> Status:
        """Return how far a resize has come, or how the last one ended; of a partition without a record, its family's.

        Cost: 1 round trip, 2 read units; while a resize is under way 1 more, with up to 64 read units.
        """
        record, family = resize_requests.known(self._context, scope)
        return status_of(self._context, scope, record or family, family)

    def busy(self) -> list[Status]:
        """Return all resizes that are requested, under way or not swept, by key.

        Cost: 1 round trip and 1 read unit a family, and 1 a resize, and what `status` costs for each.
        """
        families = self._families()
        found = self.topology.read(_active(families))
        return [
            status_of(self._context, scope, record, families[scope.family])
            for scope, record in ((self.scope(key), found[key]) for key in sorted(found))
            if under_way(record)
        ]

    def poll(self) -> list[str]:
        """Return the keys of all records of unfinished resizes, in order; a driver calls `advance` for each.

        Stored leases are brought in line before. A lowered setting of the lease shortens the waits of resizes when the
        leases that were granted before have ended. A raised one is stored while nothing changes.

        Cost: 1 round trip, 1 read unit a family; if its lease is not the setting's, 1 round trip and 1 write unit.
        """
        families = self._families()
        for record in families.values():
            self._context.keep_lease(record)
        return _active(families)

    def advance(self, key: str) -> Step:
        """Publish the next phase of a resize if its time has come, and return what to do next. Safe at any time.

        Raises as `scope`, and `ClockOffError` if an epoch depends on this process's clock, and that is off. Another
        process can go on then.

        Cost: 1 round trip, 2 read units; 1 more and 1 write unit to publish; 1 more and a read unit
        a task to read their progress.
        """
        return advance(self._context, self.scope(key))

    def work(self, key: str, task: int, *, seconds: float) -> bool:
        """Work on a task for about so many seconds; any number of processes may call this at any time.

        Returns whether there is no more to do for the task now: it is complete, its time has not come, or the resize is
        paused or over. `advance` says which.

        Raises `EngineError` if a request failed for good. The work may be continued.

        Cost: reading, 1 read unit for every 4 KB; a moved item, 4 write units for every 1 KB, and 4 for each of its
        index entries; a deleted marker, 1 for every 1 KB, and for each index entry; and 1 write unit for every
        second of work.
        """
        scope = self.scope(key)
        guard = Guard(self._context, scope)
        job = guard.job()
        if job is None or not 0 <= task < job.resize.tasks:
            return True
        try:
            homes, pace = self._homes_of(job), self._pace(job, task)
            assigned = task_of(self._context, job, task, homes=homes, pace=pace)
            complete = Slice(self._context, guard, job, assigned).run(seconds)
        except TakenError as taken:
            with suppress(ReshardRefusedError):
                resize_requests.pause(self._context, scope, paused=True, error=str(taken), resize_id=job.resize.id)
            return True
        if complete:
            with self._lock:
                self._paces.pop((job.resize.id, task), None)
        return complete

    def _pace(self, job: Job, task: int) -> Pace:
        context, resize = self._context, job.resize
        rate = course_of(context, job.scope, resize).rate(job.kind, share_of(context, resize.share))
        with self._lock:
            pace = self._paces.get((resize.id, task))
            if pace is None:
                pace = Pace(rate, width=_WIDTH, table=self._table_speed, runtime=context.runtime)
                self._paces[resize.id, task] = pace
            pace.rate = rate
            return pace

    def _homes_of(self, job: Job) -> Homes:
        # Kept for the last resize of each record, so that it reads once which partitions have records of their own.
        if job.kind is Pass.CHECK:
            return Homes(self._context, job.reversed)
        with self._lock:
            homes = self._homes.get(job.scope.key)
            if homes is None or homes.resize != job.resize.id:
                homes = self._homes[job.scope.key] = Homes(self._context, job)
            return homes

    def _families(self) -> dict[str, Record]:
        return self.topology.read(list(self._context.families))


def _active(families: Mapping[str, Record]) -> list[str]:
    return sorted({key for record in families.values() for key in record.active})


def _families(entities: Sequence[EntityDefinition[Any]]) -> dict[str, Family]:
    families: dict[str, list[EntityDefinition[Any]]] = {}
    for entity in entities:
        families.setdefault(family_of(entity), []).append(entity)
    return {name: Family(members) for name, members in families.items()}
