"""Find changes without a driver and start them again; report how long the oldest change takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dynashard.resharding import Resharder, Status
from functions.reshard.executions import Executions, beginning_of

GRACE_SECONDS: Final = 300.0
"""A change that was just asked for, or resumed, is started by the stream."""
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks after the changes of all entities. `measure` takes the hours since the oldest was requested, or 0."""

    resharder: Resharder
    executions: Executions
    clock: Callable[[], float]
    measure: Callable[[float], None]
    log: Callable[[str], None]

    def look(self) -> list[str]:
        """Start an execution for each change that should have one and has none. Returns the keys of their records.

        Cost: 1 read unit an entity and 2 or more a change; a call of Step Functions.
        """
        now = self.clock()
        busy = {status.key: status for status in self.resharder.busy()}
        started = [status.started for status in busy.values() if status.started is not None]
        self.measure(max(0.0, now - min(started, default=now)) / _HOUR)
        left_over = self.resharder.poll()
        # One that was taken back is not busy, but has a last wait to come.
        waiting = [key for key in left_over if key not in busy or _is_due(busy[key], now)]
        if not waiting:
            return []
        running = self.executions.running()
        left = [key for key in waiting if not any(name.startswith(beginning_of(key)) for name in running)]
        for key in left:
            self.log(f"the change of {key} has no execution: it is started again")
            # Two looks within a minute, such as a call that is delivered twice, start one execution.
            self.executions.start(key, str(int(now // 60)))
        return left


def _is_due(status: Status, now: float) -> bool:
    return not status.paused and now - max(status.since, status.started or 0.0) > GRACE_SECONDS
