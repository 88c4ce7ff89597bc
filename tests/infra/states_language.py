"""Runs a synthesised state machine in process: as much of Amazon States Language as ours uses, and no more.

Anything it does not know raises, so that a definition it would run differently from Step Functions cannot pass.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

KNOWN = {
    "Task": {
        "Type", "Resource", "TimeoutSeconds", "Parameters", "ResultPath", "Retry", "Catch", "Next",
    },
    "Choice": {"Type", "Choices", "Default"},
    "Succeed": {"Type"},
    "Fail": {"Type", "Error", "Cause", "CausePath"},
}  # fmt: skip


class TaskFailedError(Exception):
    """A task ended with an error that Step Functions would know by this name."""

    def __init__(self, name: str, cause: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.cause = cause


class StoppedError(Exception):
    """The execution was ended from outside, or ran out of its time: no state of it runs any more."""


@dataclass
class Clock:
    """Seconds that pass only when something waits."""

    now: float

    def __call__(self) -> float:
        return self.now


@dataclass
class Execution:
    """How an execution ended, and the states it went through."""

    status: str
    data: Any
    path: list[str] = field(default_factory=list)
    error: str = ""
    cause: str = ""


Invoke = Callable[[Mapping[str, Any], float], Any]


class Machine:
    """A state machine.

    Args:
        definition: Its definition.
        invoke: Calls the function with a payload and the seconds it may take.
        clock: Moved on by every wait.
    """

    def __init__(self, definition: Mapping[str, Any], invoke: Invoke, clock: Clock) -> None:
        self._states: Mapping[str, Mapping[str, Any]] = definition["States"]
        self._start: str = definition["StartAt"]
        self._seconds: float = definition["TimeoutSeconds"]
        self._invoke = invoke
        self._clock = clock
        assert set(definition) <= {"Comment", "StartAt", "TimeoutSeconds", "States"}
        for name, state in self._states.items():
            assert set(state) <= KNOWN[state["Type"]], f"{name}: {sorted(set(state) - KNOWN[state['Type']])}"

    def run(self, data: Mapping[str, Any], name: str) -> Execution:
        """Run to an end of the machine's own, or to its time limit."""
        deadline = self._clock.now + self._seconds
        execution = Execution("RUNNING", dict(data))
        following: str | None = self._start
        try:
            while following is not None:
                execution.path.append(following)
                following = self._step(self._states[following], execution, name, deadline)
        except StoppedError as stopped:
            execution.status = str(stopped)
        return execution

    def _step(self, state: Mapping[str, Any], execution: Execution, name: str, deadline: float) -> str | None:
        if state["Type"] == "Succeed":
            execution.status = "SUCCEEDED"
            return None
        if state["Type"] == "Fail":
            execution.status, execution.error = "FAILED", state["Error"]
            execution.cause = look_up(execution.data, state["CausePath"]) if "CausePath" in state else state["Cause"]
            return None
        if state["Type"] == "Choice":
            return choose(state, execution.data)
        return self._task(state, execution, name, deadline)

    def _task(self, state: Mapping[str, Any], execution: Execution, name: str, deadline: float) -> str:
        tried = [0] * len(state["Retry"])
        while True:
            try:
                payload = fill_in(state["Parameters"], execution.data, name)
                result = self._invoke(payload, state["TimeoutSeconds"])
            except TaskFailedError as error:
                if self._clock.now > deadline:
                    raise StoppedError("TIMED_OUT") from error
                wait = waits(state["Retry"], tried, error.name)
                if wait is None:
                    return catch(state["Catch"], error, execution)
                self._pass(wait, deadline)
            else:
                place(execution, state["ResultPath"], result)
                return str(state["Next"])

    def _pass(self, seconds: float, deadline: float) -> None:
        self._clock.now += seconds
        if self._clock.now > deadline:
            raise StoppedError("TIMED_OUT")


def waits(retriers: list[Mapping[str, Any]], tried: list[int], error: str) -> float | None:
    """Seconds until the next try, or None if there is none. Full jitter is taken at its longest."""
    for index, retrier in enumerate(retriers):
        if error not in retrier["ErrorEquals"] and retrier["ErrorEquals"] != ["States.ALL"]:
            continue
        if tried[index] >= retrier["MaxAttempts"]:
            return None
        tried[index] += 1
        seconds: float = retrier["IntervalSeconds"] * retrier["BackoffRate"] ** (tried[index] - 1)
        longest: float = retrier.get("MaxDelaySeconds", seconds)
        return min(seconds, longest)
    return None


def catch(catchers: list[Mapping[str, Any]], error: TaskFailedError, execution: Execution) -> str:
    """The state that the failure leads to."""
    (catcher,) = catchers
    assert catcher["ErrorEquals"] == ["States.ALL"]
    place(execution, catcher["ResultPath"], {"Error": error.name, "Cause": error.cause})
    return str(catcher["Next"])


def choose(state: Mapping[str, Any], data: Any) -> str:
    """The state that a choice leads to."""
    for rule in state["Choices"]:
        value = look_up(data, rule["Variable"])
        comparison = rule.get("StringEquals", rule.get("BooleanEquals"))
        assert comparison is not None
        if type(value) is type(comparison) and value == comparison:
            return str(rule["Next"])
    return str(state["Default"])


def place(execution: Execution, path: str, result: Any) -> None:
    """Put a result where its path says, through JSON as Step Functions would."""
    prefix, _, key = path.partition(".")
    assert prefix == "$"
    assert key
    assert "." not in key
    execution.data = {**execution.data, key: json.loads(json.dumps(result))}


def fill_in(parameters: Mapping[str, Any], data: Any, name: str) -> dict[str, Any]:
    """The payload of a task."""
    filled: dict[str, Any] = {}
    for key, value in parameters.items():
        if not key.endswith(".$"):
            filled[key] = value
        elif value == "$$.Execution.Name":
            filled[key[:-2]] = name
        else:
            filled[key[:-2]] = look_up(data, value)
    copied: dict[str, Any] = json.loads(json.dumps(filled))
    return copied


def look_up(data: Any, path: str) -> Any:
    """The value at a reference path; a missing one ends an execution for good, so it is an error here."""
    first, *keys = path.split(".")
    assert first == "$"
    for key in keys:
        data = data[key]
    return data
