"""The steps of the state machine. Each can be run again at any time: after an error, a timeout or a lost answer.

The state machine (`dynashard_cdk.reshard_machine`) has the order, the waits and the retries; the sharding layer does
the work of a step.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard.resharding import Resharder
from dynashard_serving.reshard.executions import following

EVENTS: Final = 8000
"""Events in its history after which an execution is followed by a new one. Step Functions ends it at 25,000: retries,
which are not counted, have room for twice as many."""
_ROUND_EVENTS: Final = 16
_TASK_EVENTS: Final = 8


class Steps:
    """The steps over one table."""

    def __init__(
        self,
        resharder: Resharder,
        *,
        slice_seconds: float,
        log: Callable[[str], None],
        events: int = EVENTS,
    ) -> None:
        self._resharder = resharder
        self._slice = slice_seconds
        self._log = log
        self._events = events

    def advance(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Bring a record's resize forward if its time has come, and say what comes next.

        Args:
            data: the execution's: `key` of the record, `run`, `part`, and the last `step`.

        Returns:
            `kind` (`wait`, `work`, `done`, or `over`: a new execution goes on), `seconds` to wait, `tasks` to work on
            now, all at once, `events` so far, and `part` and `following` of the execution that would go on.

        Raises:
            DynashardError: as the layer's controller does.
        """
        key, part = data["key"], int(data["part"]) + 1
        step = self._resharder.advance(key)
        tasks = list(step.tasks[: step.concurrency])
        events = int(data.get("step", {}).get("events", 0)) + _ROUND_EVENTS + _TASK_EVENTS * len(tasks)
        kind = "over" if events > self._events and step.kind != "done" else step.kind
        self._log(f"{key}: {kind}, {step.seconds:.0f} s, {len(step.tasks)} tasks open")
        if step.reason:
            self._log(f"{key}: {step.reason}")
        return {
            "kind": kind,
            # No state can wait for less.
            "seconds": max(1, step.as_dict()["seconds"]),
            "tasks": tasks,
            "events": events,
            "part": part,
            "following": following(data["run"], part),
        }

    def work(self, data: Mapping[str, Any]) -> bool:
        """Work on one task for a slice of time. Return whether it is complete."""
        complete = self._resharder.work(data["key"], int(data["task"]), seconds=self._slice)
        self._log(f"{data['key']}: task {data['task']} {'complete' if complete else 'goes on'}")
        return complete

    def stop(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Pause a resize whose step has failed for good, with the reason. An operator can look and resume it."""
        reason = reason_of(data["error"])
        self._log(f"{data['key']}: paused, because {reason}")
        self._resharder.pause(self._resharder.scope(data["key"]), error=reason)
        return {}


def reason_of(error: Mapping[str, Any]) -> str:
    """The message in what Step Functions has caught, whose cause is Lambda's JSON."""
    cause = str(error.get("Cause", ""))
    try:
        caught = json.loads(cause)
        message = f"{caught.get('errorType', 'Error')}: {caught.get('errorMessage', '')}"
    except (ValueError, AttributeError):
        message = cause or str(error.get("Error", "unknown error"))
    return message[:1000]
