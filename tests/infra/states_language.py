"""Runs a synthesised state machine in this process, with the part of Amazon States Language that ours use.

Any other construct raises, so that a definition which Step Functions would run differently cannot pass.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KNOWN = {
    "Task": {
        "Type", "Resource", "TimeoutSeconds", "Parameters", "ResultPath", "Retry", "Catch", "Next", "End",
    },
    "Choice": {"Type", "Choices", "Default"},
    "Wait": {"Type", "Seconds", "SecondsPath", "Next"},
    "Map": {"Type", "ItemsPath", "ItemSelector", "MaxConcurrency", "ItemProcessor", "ResultPath", "Catch", "Next"},
    "Succeed": {"Type"},
    "Fail": {"Type", "Error", "Cause", "CausePath"},
}  # fmt: skip
MOST_AT_ONCE = 40
"""Iterations of an inline map that Step Functions runs side by side."""


class TaskFailedError(Exception):
    """A task ended with an error that Step Functions would know by this name."""

    def __init__(self, name: str, cause: str = "") -> None:
        super().__init__(name)
        self.name = name
        self.cause = cause


class StoppedError(Exception):
    """The execution was stopped or timed out."""


@dataclass
class Clock:
    """Seconds that pass only when something waits."""

    now: float

    def __call__(self) -> float:
        return self.now


@dataclass
class Execution:
    """The outcome of an execution, and the states it went through."""

    status: str
    data: Any
    path: list[str] = field(default_factory=list)
    error: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Run:
    """Data of an execution that its states share: the context object, the deadline, and the visited states."""

    context: Mapping[str, str]
    deadline: float
    path: list[str]


Invoke = Callable[[str, Mapping[str, Any], float], Any]


class Machine:
    """A state machine.

    Args:
        definition: Its definition.
        invoke: Calls a resource with a payload and the seconds it may take.
        clock: Moved on by every wait.
        arn: Its own.
    """

    def __init__(self, definition: Mapping[str, Any], invoke: Invoke, clock: Clock, arn: str = "machine") -> None:
        self._states: Mapping[str, Mapping[str, Any]] = definition["States"]
        self._start: str = definition["StartAt"]
        self._seconds: float = definition["TimeoutSeconds"]
        self._invoke = invoke
        self._clock = clock
        self._arn = arn
        assert set(definition) <= {"Comment", "StartAt", "TimeoutSeconds", "States"}
        check_states(self._states)

    def run(self, data: Mapping[str, Any], name: str) -> Execution:
        """Run until an end state or the time limit."""
        execution = Execution("RUNNING", dict(data))
        context = {"$$.Execution.Name": name, "$$.StateMachine.Id": self._arn}
        run = Run(context, self._clock.now + self._seconds, execution.path)
        following: str | None = self._start
        try:
            while following is not None:
                execution.path.append(following)
                following = self._step(self._states[following], execution, run)
        except StoppedError as stopped:
            execution.status = str(stopped)
        return execution

    def _step(self, state: Mapping[str, Any], execution: Execution, run: Run) -> str | None:
        if state["Type"] == "Succeed":
            execution.status = "SUCCEEDED"
            return None
        if state["Type"] == "Fail":
            execution.status, execution.error = "FAILED", state["Error"]
            execution.cause = look_up(execution.data, state["CausePath"]) if "CausePath" in state else state["Cause"]
            return None
        if state["Type"] == "Choice":
            return choose(state, execution.data)
        if state["Type"] == "Wait":
            return self._wait(state, execution, run)
        try:
            work = self._map if state["Type"] == "Map" else self._task
            place(execution, state["ResultPath"], work(state, execution.data, run))
        except TaskFailedError as error:
            return catch(state["Catch"], error, execution)
        return str(state["Next"])

    def _wait(self, state: Mapping[str, Any], execution: Execution, run: Run) -> str:
        seconds = state["Seconds"] if "Seconds" in state else look_up(execution.data, state["SecondsPath"])
        assert type(seconds) is int
        assert seconds > 0
        self._pass(seconds, run)
        return str(state["Next"])

    def _map(self, state: Mapping[str, Any], data: Any, run: Run) -> list[Any]:
        """Iterations one after the other; the first that fails fails the state."""
        assert 0 < state["MaxConcurrency"] <= MOST_AT_ONCE
        processor = state["ItemProcessor"]
        assert processor["ProcessorConfig"] == {"Mode": "INLINE"}
        ((name, inner),) = processor["States"].items()
        assert processor["StartAt"] == name
        assert (inner["Type"], inner["End"]) == ("Task", True)
        results = []
        for item in look_up(data, state["ItemsPath"]):
            run.path.append(name)
            context = {**run.context, "$$.Map.Item.Value": item}
            chosen = fill_in(state["ItemSelector"], data, context)
            results.append(self._task(inner, chosen, Run(context, run.deadline, run.path)))
        return results

    def _task(self, state: Mapping[str, Any], data: Any, run: Run) -> Any:
        tried = [0] * len(state["Retry"])
        while True:
            try:
                payload = fill_in(state["Parameters"], data, run.context)
                return self._invoke(state["Resource"], payload, state.get("TimeoutSeconds", 60))
            except TaskFailedError as error:
                if self._clock.now > run.deadline:
                    raise StoppedError("TIMED_OUT") from error
                wait = waits(state["Retry"], tried, error.name)
                if wait is None:
                    raise
                self._pass(wait, run)

    def _pass(self, seconds: float, run: Run) -> None:
        self._clock.now += seconds
        if self._clock.now > run.deadline:
            raise StoppedError("TIMED_OUT")


def check_states(states: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse unknown fields, and transitions to missing states."""
    for name, state in states.items():
        assert set(state) <= KNOWN[state["Type"]], f"{name}: {sorted(set(state) - KNOWN[state['Type']])}"
        if state["Type"] == "Map":
            check_states(state["ItemProcessor"]["States"])


def matches(names: Sequence[str], error: str) -> bool:
    """Whether a list of error names covers an error."""
    return error in names or list(names) == ["States.ALL"]


def waits(retriers: list[Mapping[str, Any]], tried: list[int], error: str) -> float | None:
    """Return the seconds until the next attempt, or None after the last. Full jitter takes its longest value."""
    for index, retrier in enumerate(retriers):
        if not matches(retrier["ErrorEquals"], error):
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
    assert catchers[-1]["ErrorEquals"] == ["States.ALL"]
    catcher = next(each for each in catchers if matches(each["ErrorEquals"], error.name))
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
    """Put a result at its path, converted through JSON as Step Functions does."""
    prefix, _, key = path.partition(".")
    assert prefix == "$"
    assert key
    assert "." not in key
    execution.data = {**execution.data, key: json.loads(json.dumps(result))}


def fill_in(parameters: Mapping[str, Any], data: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a task."""
    filled: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            filled[key] = fill_in(value, data, context)
        elif not key.endswith(".$"):
            filled[key] = value
        elif value.startswith("$$."):
            filled[key[:-2]] = context[value]
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
