"""What AWS does around the functions of a resize: roles, kills, executions, metrics and event filters."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Resend, Transport, Wire
from tests.roles import Grant, Role, logical_id, used_by


class KilledError(BaseException):
    """The function's process was killed."""


@dataclass
class FunctionTransport(OneByOne):
    """Refuses what the role of the function that runs lacks, and dies before the request after `requests_left`.

    Attributes:
        roles: the roles by their functions' names.
        tables: the tables' logical ids by their names.
        who: the function that runs; empty for others, who may do everything.
        used: what each function has asked for.
    """

    inner: Transport
    roles: dict[str, Role]
    tables: dict[str, str] = field(default_factory=dict)
    who: str = ""
    used: dict[str, set[Grant]] = field(default_factory=dict)
    requests_left: int | None = None

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        if self.who:
            self._check(operation, request)
        if self.requests_left is not None:
            self.requests_left -= 1
            if self.requests_left < 0:
                raise KilledError
        return self.inner.call(operation, request, resend=resend)

    def close(self) -> None:
        self.inner.close()

    @contextmanager
    def acting_as(self, who: str) -> Iterator[None]:
        """Send requests with the role of a function."""
        before, self.who = self.who, who
        try:
            yield
        finally:
            self.who = before

    def _check(self, operation: str, request: Mapping[str, Any]) -> None:
        used = {(logical_id(resource, self.tables), action) for resource, action in used_by(operation, request)}
        self.used.setdefault(self.who, set()).update(used)
        refusal = self.roles[self.who].refusal(operation, used)
        if refusal is not None:
            raise refusal


class StepFunctions:
    """The part of Step Functions that is called: it starts one execution for each name."""

    class exceptions:  # noqa: N801 - botocore's name
        class ExecutionAlreadyExists(Exception):  # noqa: N818 - botocore's name
            """There was one of this name."""

    def __init__(self) -> None:
        self.started: dict[str, dict[str, Any]] = {}
        self.ended: set[str] = set()
        self.broken = 0

    def start_execution(self, *, stateMachineArn: str, name: str, input: str) -> None:  # noqa: A002, N803 - botocore's
        assert stateMachineArn
        if self.broken:
            self.broken -= 1
            raise ConnectionError("Step Functions cannot be reached")
        assert 1 <= len(name) <= 80
        assert name.replace("-", "").isalnum()
        if name in self.started:
            raise self.exceptions.ExecutionAlreadyExists
        self.started[name] = json.loads(input)

    def list_executions(self, **request: Any) -> dict[str, Any]:
        assert request["statusFilter"] == "RUNNING"
        return {"executions": [{"name": name} for name in self.started if name not in self.ended]}

    @property
    def waiting(self) -> list[str]:
        return [name for name in self.started if name not in self.ended]


@dataclass
class Mappings:
    """The part of Lambda that is called: it lists the event source mappings of a stream, two at a time.

    Attributes:
        states: of the mappings, by the names of the functions that they invoke.
        filtered: those that have filters.
    """

    states: dict[str, str] = field(default_factory=dict)
    filtered: set[str] = field(default_factory=set)

    def list_event_source_mappings(self, *, EventSourceArn: str, Marker: str = "0") -> dict[str, Any]:  # noqa: N803 - botocore's
        assert EventSourceArn
        first = int(Marker)
        listed = [
            {
                "FunctionArn": f"arn:aws:lambda:us-east-1:111122223333:function:{name}:live",
                "State": state,
                **({"FilterCriteria": {"Filters": [{"Pattern": "{}"}]}} if name in self.filtered else {}),
            }
            for name, state in list(self.states.items())[first : first + 2]
        ]
        more = {"NextMarker": str(first + 2)} if first + 2 < len(self.states) else {}
        return {"EventSourceMappings": listed, **more}


@dataclass
class OpenShards:
    """Passes calls on to a client of DynamoDB Streams, and leaves out where shards end."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def describe_stream(self, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.inner.describe_stream(**request)
        for shard in answer["StreamDescription"]["Shards"]:
            shard["SequenceNumberRange"].pop("EndingSequenceNumber", None)
        return answer


class CalmMetrics:
    """Stands for a client of CloudWatch that knows of no throttle."""

    def get_metric_data(self, **_request: Any) -> dict[str, Any]:
        return {"MetricDataResults": []}


def passes(value: Any, pattern: Any) -> bool:
    """Return whether a value matches a Lambda event filter, as far as our filters use them."""
    if isinstance(pattern, dict):
        return isinstance(value, Mapping) and all(
            name in value and passes(value[name], inner) for name, inner in pattern.items()
        )
    (wanted,) = pattern
    if isinstance(wanted, dict):
        assert wanted == {"exists": True}
        # Filters apply only to leaves.
        return not isinstance(value, Mapping)
    return type(value) is type(wanted) and bool(value == wanted)
