"""Growing a count by an epoch: from some key time on, a new count holds, and nothing moves.

    publish     the entry, pending, that begins so far ahead that no process has placed a later key before it is known
    wait        until every view in use has it
    confirm     if no key in it can have been placed yet, else void it and publish a later one
    wait        until its time has come

The same controller, driver and state machine carry it out as a resize that moves items, and it may be killed at any
moment as well. Who must place a key under an entry that is still pending does not wait: see `Router`.
"""

from dataclasses import replace
from itertools import takewhile
from typing import Any, Final

from dynashard.errors import ConfigurationError, ReshardRefusedError
from dynashard.key_clock import clock_off
from dynashard.key_time import TimeFormat
from dynashard.resharding.context import Context
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Scope
from dynashard.resharding.status import Step
from dynashard.topology import Epoch, EpochState, Record
from dynashard.topology.epochs import MOST_EPOCHS, TOO_MANY_EPOCHS
from dynashard.transport.clock_offset import clock_offset_of

MOST_VOID: Final = 4
"""Entries in a row that were published too late to be confirmed, after which a resize is paused."""


def publication(context: Context, scope: Scope, record: Record, family: Record, count: int, **fields: Any) -> Record:
    """Return a record with one more epoch, which is pending; `fields` are other fields of the record that are set.

    Raises:
        ReshardRefusedError: too_many_epochs: its history is full.
        ClockOffError: this process's clock is off.
    """
    _require_right_clock(context, record)
    time_format = format_of(scope, record)
    if len(record.epochs) >= MOST_EPOCHS:
        raise ReshardRefusedError(
            f"{record.key} has {MOST_EPOCHS} epochs, and none can ever be taken out: its items keep their places",
            reason=TOO_MANY_EPOCHS,
        )
    now, timing = context.runtime.clock(), context.timing
    # Each time that it came too late it gets more time.
    begins = now + timing.ahead(timing.longest(family, now)) + timing.margin * (2 ** _void_at_the_end(record) - 1)
    first = time_format.first(begins)
    last = record.epochs[-1].first if record.epochs else ""
    if first <= last:
        # The clock that published the last one was ahead.
        first = time_format.first(time_format.moment_of(last) + time_format.unit / 1_000_000)
    return record.publishing(now, first, count, **fields)


def _require_right_clock(context: Context, record: Record) -> None:
    """Refuse to decide by a clock that is off, or may be, by more than all processes assume."""
    offset, bounds = clock_offset_of(context.transport), context.timing.clocks
    if offset.exceeds(bounds.off):
        raise clock_off(offset, bounds, f"it would decide when an epoch of {record.key} begins, and when views have it")


def format_of(scope: Scope, record: Record) -> TimeFormat:
    """Return the format of the time that places items; raises `ConfigurationError` if that is no longer declared."""
    if scope.time is None:
        raise ConfigurationError(
            f"{record.key} has epochs, and {scope.entity.name} is declared with {scope.entity.rule.name} placement: "
            'declare Shards(..., placement="epochs") again'
        )
    return scope.time


def advance_epoch(context: Context, scope: Scope, record: Record, family: Record) -> Step:
    """Take the next step of a resize whose epoch is published; raises `TopologyChangedError` if others were first.

    Raises `ClockOffError` if the step depends on this process's clock, and that is off.
    """
    return _Controller(context, scope, record, family).step()


def came_too_late(record: Record) -> bool:
    """Whether the last epochs could not be confirmed in time, so that another one probably could not either."""
    return _void_at_the_end(record) >= MOST_VOID


def published_again(context: Context, scope: Scope, record: Record, family: Record, resize: Resize) -> Record:
    """Return the record of a resize with a later epoch, in place of one that is void; raises as `publication`."""
    again = replace(resize, seen=None).stored()
    return publication(context, scope, record, family, resize.target, resize=again)


def taken_back(context: Context, scope: Scope, record: Record, family: Record) -> list[tuple[Record, Record]]:
    """Return the records after a resize was aborted before its epoch was confirmed.

    Raises `ReshardRefusedError` (confirmed) afterwards: its keys may have been placed.
    """
    entry, now = record.epochs[-1], context.runtime.clock()
    if entry.state is EpochState.CONFIRMED:
        raise ReshardRefusedError(
            f"the epoch of {record.key} with {entry.count} shards is confirmed: start a resize to another count",
            reason="confirmed",
        )
    void = record.settling(now, entry.first, EpochState.VOID) or record
    resize = Resize.of(record)
    stopped = replace(resize, paused=False, error=None, seen=None).stored() if resize else record.resize
    return _ended(scope, record, void.revised(now, resize=stopped), family, now)


class _Controller:
    """Derives one step from the records of a resize."""

    def __init__(self, context: Context, scope: Scope, record: Record, family: Record) -> None:
        self._context = context
        self._scope = scope
        self._record = record
        self._family = family
        self._now = context.runtime.clock()

    def step(self) -> Step:
        record, resize = self._record, Resize.of(self._record)
        if resize is None or resize.paused or (record.target is None and self._scope.key not in self._family.active):
            return Step("done")
        time_format = format_of(self._scope, record)
        if record.target is None:
            return self._finish()
        entry = record.epochs[-1]
        if entry.state is EpochState.PENDING:
            return self._settle(resize, entry, time_format)
        if entry.state is EpochState.VOID:
            return self._publish_again(resize)
        left = time_format.moment_of(entry.first) - self._now
        return Step("wait", left, steady=True) if left > 0 else self._finish()

    def _settle(self, resize: Resize, entry: Epoch, time_format: TimeFormat) -> Step:
        """Confirm a pending epoch once every view has it, if no key in it can have been placed by then; or void it."""
        _require_right_clock(self._context, self._record)
        now, clocks = self._now, self._context.timing.clocks
        seen = resize.seen
        if seen is None or seen > now + 2 * clocks.off:
            # A request that publishes may be executed long after it was sent, so the wait begins when it is seen.
            self._save(resize=replace(resize, seen=now).stored())
            return Step("wait", self._context.known_in(self._family, now, now), steady=True)
        left = self._context.known_in(self._family, seen, now)
        if left > 0:
            return Step("wait", left, steady=True)
        in_time = now + clocks.placed < time_format.moment_of(entry.first)
        state = EpochState.CONFIRMED if in_time else EpochState.VOID
        self._context.topology.settle(self._record.key, entry.first, state, now=now)
        return Step("wait", 0.0)

    def _publish_again(self, resize: Resize) -> Step:
        """Publish a later epoch after one that could not be confirmed in time; pause after several."""
        if came_too_late(self._record):
            error = f"{MOST_VOID} epochs could not be confirmed in time: is the worker slow, or a clock off?"
            self._save(resize=replace(resize, paused=True, error=error).stored())
            return Step("done")
        later = published_again(self._context, self._scope, self._record, self._family, resize)
        self._context.topology.save((self._record, later))
        return Step("wait", 0.0)

    def _finish(self) -> Step:
        """End a resize whose epoch has begun, or which was aborted."""
        self._context.topology.save(*_ended(self._scope, self._record, self._record, self._family, self._now))
        return Step("done")

    def _save(self, **fields: Any) -> None:
        self._context.topology.save((self._record, self._record.revised(self._now, **fields)))


def _ended(scope: Scope, was: Record, record: Record, family: Record, now: float) -> list[tuple[Record, Record]]:
    """The records without the resize."""
    active = family.active - {scope.key}
    if scope.whole_family:
        return [(was, record.revised(now, target=None, active=active))]
    return [(was, record.revised(now, target=None)), (family, family.revised(now, active=active))]


def _void_at_the_end(record: Record) -> int:
    """How many void entries follow the last one that is not void."""
    return len(list(takewhile(lambda entry: entry.state is EpochState.VOID, reversed(record.epochs))))
