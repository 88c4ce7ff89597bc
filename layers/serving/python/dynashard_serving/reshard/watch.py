"""Find resizes without a driver and start them again; report how far resizes have come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dynashard.resharding import Resharder, Status
from dynashard_serving.reshard.executions import Executions, beginning_of

GRACE_SECONDS: Final = 300.0
"""A resize that was just asked for, or resumed, is started by the stream."""
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """The resizes that are not complete.

    Attributes:
        running, paused: how many there are.
        handled: items moved and markers deleted by the running ones.
        units: read and write units that the running ones have consumed.
        hours: since the oldest was requested; 0 if there is none.
        percent: the share of items moved of the least advanced running one; None if no items were counted.
    """

    running: int = 0
    paused: int = 0
    handled: int = 0
    units: float = 0.0
    hours: float = 0.0
    percent: float | None = None


def seen_in(resizes: Sequence[Status], now: float) -> Seen:
    """Sum up the resizes that are not complete, at a time in epoch seconds."""
    running = [each for each in resizes if not each.paused]
    started = [each.started for each in resizes if each.started is not None]
    shares = [100.0 * min(1.0, each.moved / each.total) for each in running if each.total]
    return Seen(
        running=len(running),
        paused=len(resizes) - len(running),
        handled=sum(each.moved + each.late + each.swept_marks for each in running),
        units=sum(each.read_units + each.write_units for each in running),
        hours=max(0.0, now - min(started, default=now)) / _HOUR,
        percent=min(shares, default=None),
    )


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks after the resizes of all entities. `measure` takes what it has seen, each time."""

    resharder: Resharder
    executions: Executions
    clock: Callable[[], float]
    measure: Callable[[Seen], None]
    log: Callable[[str], None]

    def look(self) -> list[str]:
        """Start an execution for each resize that should have one and has none. Returns the keys of their records.

        Cost: 1 read unit an entity and 2 or more a resize; a call of Step Functions.
        """
        now = self.clock()
        busy = {status.key: status for status in self.resharder.busy()}
        self.measure(seen_in(list(busy.values()), now))
        left_over = self.resharder.poll()
        # One that was taken back is not busy, but has a last wait to come.
        waiting = [key for key in left_over if key not in busy or _is_due(busy[key], now)]
        if not waiting:
            return []
        running = self.executions.running()
        left = [key for key in waiting if not any(name.startswith(beginning_of(key)) for name in running)]
        for key in left:
            self.log(f"the resize of {key} has no execution: it is started again")
            # Two looks within a minute, such as a call that is delivered twice, start one execution.
            self.executions.start(key, str(int(now // 60)))
        return left


def _is_due(status: Status, now: float) -> bool:
    return not status.paused and now - max(status.since, status.started or 0.0) > GRACE_SECONDS
