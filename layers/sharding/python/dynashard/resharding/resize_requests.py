"""Resize requests of operators and of the growth policy: start, estimate, abort, pause, resume."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from dynashard.entity import Shards
from dynashard.errors import ReshardRefusedError, TopologyChangedError
from dynashard.placement import UNSHARDED
from dynashard.resharding import epochs
from dynashard.resharding.checks import check_now, check_possible, rewrites_entries, under_way
from dynashard.resharding.context import Context
from dynashard.resharding.estimate import Estimate
from dynashard.resharding.forecast import forecast
from dynashard.resharding.job import tasks_of
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Scope
from dynashard.topology import Phase, Record, family_of
from dynashard.topology.records import first_record

_ROUNDS: Final = 8

Put = tuple[Record | None, Record]
"""A record as it was read, and as it is to be."""


@dataclass(frozen=True, slots=True)
class ResizeOptions:
    """What a request for a resize asks for besides the count; see `Resharder.start`."""

    budget: float | None = None
    share: float | None = None
    cause: str = "operator"
    survey: bool = True
    creating: float = 0.0
    rewrite: bool | None = None


def start(context: Context, scope: Scope, to: int, options: ResizeOptions) -> None:
    """Store a request for a resize, which the controller carries out; see `Resharder.start`."""
    check_possible(scope, to, options.budget, options.share)
    resize_id = context.new_id()

    def requested(record: Record | None, family: Record) -> list[Put]:
        if record is not None and record.resize.get("id") == resize_id:
            # The answer of an earlier attempt was lost.
            return []
        check_now(scope, to, record, family, rewrite=options.rewrite)
        now, lease = context.runtime.clock(), family.granted
        here = record or structs.replace(
            first_record(scope.key, family.count, now=now, lease=lease), epochs=family.epochs
        )
        resize = _planned(context, scope, here.count, to, options, last=record, resize_id=resize_id, now=now)
        if scope.time is not None:
            request = epochs.publication(
                context, scope, here, family, to, target=to, lease=lease, resize=resize.stored()
            )
        else:
            # When nothing moves, wait only for the previous publication: writers may be waiting for new shards.
            since = (
                now if scope.moves_by(rewrites=resize.rewrites) else family.since if record is None else record.since
            )
            # Entries that never held have placed no key. A history would begin with the count before this resize.
            request = here.revised(now, target=to, since=since, lease=lease, resize=resize.stored(), epochs=())
        active = family.active | {scope.key}
        if scope.whole_family:
            return [(record, request.revised(now, active=active))]
        differ = family.differ_since
        if scope.partition is not None and differ is None:
            differ = now
        # Clients look for records of single partitions from now on. The resize begins once all of them do (`_pending`).
        return [(record, request), (family, family.revised(now, active=active, differ_since=differ))]

    _save(context, scope, requested)


def estimate(context: Context, scope: Scope, to: int, options: ResizeOptions) -> Estimate:
    """Return what a resize would take; see `Resharder.estimate`."""
    check_possible(scope, to, options.budget, options.share)
    record, family = known(context, scope)
    check_now(scope, to, record, family, rewrite=options.rewrite)
    origin, now = (record or family).count, context.runtime.clock()
    resize = _planned(context, scope, origin, to, options, last=record, resize_id="", now=now)
    return forecast(context, scope, family, resize)


def abort(context: Context, scope: Scope) -> None:
    """Stop a resize, or request its reversal; see `Resharder.abort`."""

    def requested(record: Record | None, family: Record) -> list[Put]:
        record, resize = _running(scope, record)
        if resize.back_to is not None:
            return []
        if record.epochs:
            return list(epochs.taken_back(context, scope, record, family))
        now = context.runtime.clock()
        # Entries that were rewritten under an unchanged count are at their places.
        harmless = record.phase in (Phase.STABLE, Phase.PREPARE) or record.target == record.count
        if record.target is not None and harmless:
            return [(record, taken_back(record, resize, now))]
        planned = replace(resize, back_to=resize.origin, paused=False, error=None)
        return [(record, record.revised(now, resize=planned.stored()))]

    _save(context, scope, requested)


def taken_back(record: Record, resize: Resize, now: float, *, declined: str | None = None) -> Record:
    """Return the record of a resize that ends before anything moved; `declined` says why if nobody asked for that."""
    stopped = replace(resize, paused=False, error=None, seen=None, declined=declined).stored()
    return record.revised(now, phase=Phase.STABLE, target=None, since=now, resize=stopped)


def pause(
    context: Context, scope: Scope, *, paused: bool, error: str | None = None, resize_id: str | None = None
) -> None:
    """Pause or resume a resize, unless it is another one than `resize_id`; see `Resharder.pause`."""

    def requested(record: Record | None, family: Record) -> list[Put]:
        record, resize = _running(scope, record)
        if resize_id not in (None, resize.id) or (resize.paused, resize.error) == (paused, error):
            return []
        now_so = replace(resize, paused=paused, error=error)
        if not paused and record.target is not None and epochs.came_too_late(record):
            return [(record, epochs.published_again(context, scope, record, family, now_so))]
        return [(record, record.revised(context.runtime.clock(), resize=now_so.stored()))]

    _save(context, scope, requested)


def known(context: Context, scope: Scope) -> tuple[Record | None, Record]:
    """Return the record of a scope and that of its family; those of a family or index are created if missing.

    Cost: 1 round trip, 2 read units; to create one, 1 round trip and 1 write unit.
    """
    record, family = context.read(scope)
    entity = scope.entity

    def first(key: str, shards: Shards | None) -> Record:
        count, now = shards.initial if shards else UNSHARDED, context.runtime.clock()
        return context.topology.create(first_record(key, count, now=now, lease=context.timing.lease))

    if family is None:
        family = first(family_of(entity), entity.shards)
    if scope.whole_family:
        return family, family
    if record is None and scope.index is not None:
        record = first(scope.key, scope.shards)
    return record, family


def _save(context: Context, scope: Scope, requested: Callable[[Record | None, Record], list[Put]]) -> None:
    """Store what `requested` returns for the current records of a scope and its family."""
    for round_ in range(_ROUNDS):
        puts = requested(*known(context, scope))
        if not puts:
            return
        try:
            context.topology.save(*puts)
        except TopologyChangedError:
            if round_ + 1 == _ROUNDS:
                raise
            context.runtime.sleep(0.05 * context.runtime.random())
        else:
            return


def _planned(
    context: Context,
    scope: Scope,
    origin: int,
    to: int,
    options: ResizeOptions,
    *,
    last: Record | None,
    resize_id: str,
    now: float,
) -> Resize:
    """Return a resize as it is requested at `now`, in epoch seconds; `last` is the record with the previous one."""
    before = None if last is None else Resize.of(last)
    # For one partition a check is cheap. For a family it takes a Scan of the table, so it is done only if the last
    # resize has met items that were stored late.
    worthwhile = scope.partition is not None or (before is not None and bool(before.late or before.left))
    rewrites = rewrites_entries(scope, origin, to, rewrite=options.rewrite)
    moves = scope.moves_by(rewrites=rewrites) and scope.time is None
    resize = Resize(
        resize_id,
        origin,
        to,
        tasks=0,
        cause=options.cause,
        started=now,
        budget=options.budget,
        share=options.share,
        survey=options.survey and moves,
        creating=options.creating,
        check=worthwhile and scope.index is None and moves,
        rewrites=rewrites,
    )
    return replace(resize, tasks=tasks_of(scope, resize, context.segments)) if scope.time is None else resize


def reversal(context: Context, scope: Scope, record: Record, resize: Resize, *, now: float) -> Record:
    """Return the record of a resize that has ended and is to be reversed, with the request for the resize back."""
    over = record.revised(now, resize=resize.stored())
    options = ResizeOptions(resize.budget, resize.share, "abort", resize.survey, rewrite=True)
    back = _planned(
        context, scope, record.count, resize.origin, options, last=over, resize_id=context.new_id(), now=now
    )
    return record.revised(now, target=resize.origin, swept=True, since=now, resize=back.stored())


def _running(scope: Scope, record: Record | None) -> tuple[Record, Resize]:
    resize = Resize.of(record) if record else None
    if record is None or resize is None or not under_way(record):
        raise ReshardRefusedError(f"no resize of {scope.key} is under way", reason="not_running")
    return record, resize
