"""What operators, and the growth policy, may ask for: start, abort, pause, resume."""

from collections.abc import Callable
from typing import Final

from dynashard.entity import Shards
from dynashard.errors import ReshardRefusedError, TopologyChangedError
from dynashard.placement import UNSHARDED
from dynashard.resharding.change import Change
from dynashard.resharding.checks import check_now, check_possible, under_way
from dynashard.resharding.context import Context
from dynashard.resharding.job import tasks_of
from dynashard.resharding.scope import Scope
from dynashard.routing import rule_of
from dynashard.topology import Phase, Record, family_of
from dynashard.topology.records import first_record

_ROUNDS: Final = 8

Put = tuple[Record | None, Record]
"""A record as it was read, and as it is to be."""


def start(context: Context, scope: Scope, to: int, *, budget: float | None, cause: str, survey: bool) -> None:
    """Write a request for a change down; the controller carries it out, step by step. See `Resharder.start`."""
    check_possible(scope, to, budget)
    fresh = context.new_id()

    def asked(record: Record | None, family: Record) -> list[Put]:
        if record is not None and record.change.get("id") == fresh:
            # The answer to this very request was lost.
            return []
        check_now(scope, to, record, family)
        now, lease = context.clock(), family.granted
        here = record or first_record(scope.key, family.count, now=now, lease=lease)
        moves = scope.index is not None or rule_of(scope.entity).fixed
        change = _change(context, scope, here.count, to, fresh, now=now, cause=cause, last=record)
        change = change.but(budget=budget, survey=survey and moves)
        # Where nothing moves, writers may be waiting for new shards: only what was published before must be known.
        since = now if moves else family.since if record is None else record.since
        request = here.changed(now, target=to, since=since, lease=lease, change=change.stored())
        active = family.active | {scope.key}
        if scope.whole_family:
            return [(record, request.changed(now, active=active))]
        differ = family.differ_since
        if scope.partition is not None and differ is None:
            differ = now
        return [(record, request), (family, family.changed(now, active=active, differ_since=differ))]

    _save(context, scope, asked)


def abort(context: Context, scope: Scope) -> None:
    """Take a change back, at once or when it is over. See `Resharder.abort`."""

    def asked(record: Record | None, _family: Record) -> list[Put]:
        record, change = _running(scope, record)
        if change.back_to is not None:
            return []
        now = context.clock()
        if record.target is not None and record.phase in (Phase.STABLE, Phase.PREPARE):
            stopped = change.but(paused=False, error=None, seen=None).stored()
            quiet = record.changed(now, phase=Phase.STABLE, target=None, since=now, change=stopped)
            return [(record, quiet)]
        planned = change.but(back_to=change.origin, paused=False, error=None)
        return [(record, record.changed(now, change=planned.stored()))]

    _save(context, scope, asked)


def pause(
    context: Context, scope: Scope, *, paused: bool, error: str | None = None, change_id: str | None = None
) -> None:
    """Let a change stand still, or go on. See `Resharder.pause`."""

    def asked(record: Record | None, _family: Record) -> list[Put]:
        record, change = _running(scope, record)
        if change_id not in (None, change.id) or (change.paused, change.error) == (paused, error):
            return []
        stored = change.but(paused=paused, error=error).stored()
        return [(record, record.changed(context.clock(), change=stored))]

    _save(context, scope, asked)


def known(context: Context, scope: Scope) -> tuple[Record | None, Record]:
    """The record of a scope and that of its family. Those that every entity has are written if there is none.

    Cost: 1 round trip, 2 read units; to write one, 1 round trip and 1 write unit.
    """
    record, family = context.read(scope)
    entity = scope.entity

    def first(key: str, shards: Shards | None) -> Record:
        count = shards.initial if shards else UNSHARDED
        return context.topology.create(first_record(key, count, now=context.clock(), lease=context.timing.lease))

    if family is None:
        family = first(family_of(entity), entity.shards)
    if scope.whole_family:
        return family, family
    if record is None and scope.index is not None:
        record = first(scope.key, scope.shards)
    return record, family


def _save(context: Context, scope: Scope, asked: Callable[[Record | None, Record], list[Put]]) -> None:
    """Change the records of a scope and its family as `asked` says, from what they are at that moment.

    Raises:
        TopologyChangedError: others were faster, time and again.
    """
    for round_ in range(_ROUNDS):
        puts = asked(*known(context, scope))
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


def _change(
    context: Context, scope: Scope, origin: int, to: int, fresh: str, *, now: float, cause: str, last: Record | None
) -> Change:
    """A change that is asked for; `last` is the record with the one before it."""
    return Change(
        id=fresh,
        origin=origin,
        target=to,
        cause=cause,
        started=now,
        tasks=tasks_of(scope, origin, to, context.segments),
        check=_to_check(scope, last),
    )


def _to_check(scope: Scope, record: Record | None) -> bool:
    """Whether the new homes are looked at before a change begins.

    For one partition that is cheap. For all of a family it takes a Scan of the table, and is left out if the last
    change has met nothing that was stored late.
    """
    if scope.index is not None or not rule_of(scope.entity).fixed:
        return False
    last = None if record is None else Change.of(record)
    return scope.partition is not None or (last is not None and bool(last.late or last.left))


def pending_again(context: Context, scope: Scope, record: Record, change: Change, *, now: float) -> Record:
    """The record of a change that is over and is to be taken back: the request for the way back."""
    over = record.changed(now, change=change.stored())
    back = _change(
        context, scope, record.count, change.origin, context.new_id(), now=now, cause="abort", last=over
    ).but(budget=change.budget, survey=change.survey)
    return record.changed(now, target=change.origin, swept=True, since=now, change=back.stored())


def _running(scope: Scope, record: Record | None) -> tuple[Record, Change]:
    change = Change.of(record) if record else None
    if record is None or change is None or not under_way(record):
        raise ReshardRefusedError(f"no change of {scope.key} is under way", reason="not_running")
    return record, change
