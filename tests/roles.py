"""The roles of the deployed functions, and a transport that refuses what such a role lacks, as DynamoDB does."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from botocore.exceptions import ClientError

from dynashard.errors import DynashardError
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.classification import Refusal, classify
from dynashard.transport.clock_offset import ClockOffset, clock_offset_of
from dynashard.transport.interface import Call, Resend, Transport, Wire
from tests.infra.templates import ROOT, statements

SNAPSHOTS = ROOT / "tests" / "infra" / "snapshots"
ROLES = {
    "api": ("Api", "ApiRole"),
    "commands": ("Commands", "CommandsRole"),
    "writer": ("Writer", "WorkerRole"),
    "changes": ("Changes", "FollowRole"),
    "watch": ("Reshard", "WatchRole"),
}
"""The stacks and roles of functions, by the functions' names."""
TABLES = ("Table", "Topology", "Idempotency")
_HASH = "(?:[0-9A-F]{8})?"
_RESOURCE = re.compile(rf"<(?:ExportsOutput(?:FnGetAtt|Ref))?(\w+?){_HASH}(?:\.?Arn)?{_HASH}>(/index/\w+)?$")
"""A resource of this or another stack, as `statements` shortens it: its logical id, without CDK's hash."""
_OF_STEPS = {"ConditionCheck": "ConditionCheckItem", "Delete": "DeleteItem", "Get": "GetItem", "Put": "PutItem"}
_NAMING = ("QueueUrl", "SecretId", "stateMachineArn", "TableName", "Name", "EventBusName")
"""The parameters of requests to services that name a resource."""
_DENIED_STATUS = 400
BY_LAMBDA = frozenset(
    {
        *("logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTelemetryRecords", "xray:PutTraceSegments"),
        *("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ReceiveMessage"),
        *("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"),
    }
)
"""Actions that Lambda itself takes with a function's role: for its log and trace, and to poll queues and streams."""

Grant = tuple[str, str]
"""A table (or `<table>/index/<slot>`) and an action on it without `dynamodb:`; other resources with whole actions."""


@dataclass(frozen=True)
class Role:
    """What a role may do on the tables, and on the resources of other services, which are named by their logical ids.

    Attributes:
        grants: actions on items.
        others: all other actions. A resource that has no logical id is named as `statements` does.
    """

    name: str
    grants: frozenset[Grant]
    others: frozenset[Grant] = frozenset()

    @classmethod
    def of(cls, template: Mapping[str, Any], name: str) -> "Role":
        """Read a role in a template."""
        found = {
            (_named(resource), action) for resource, actions in statements(template, name).items() for action in actions
        }
        on_items = {each for each in found if each[0].partition("/")[0] in TABLES}
        grants = frozenset((resource, action.removeprefix("dynamodb:")) for resource, action in on_items)
        return cls(name, grants, frozenset(found - on_items))

    @property
    def all(self) -> set[Grant]:
        """All grants, with whole actions."""
        return {(resource, f"dynamodb:{action}") for resource, action in self.grants} | self.others

    def without(self, *grants: Grant) -> "Role":
        """Return the same role with less."""
        assert (self.grants | self.others).issuperset(grants)
        return Role(self.name, self.grants - set(grants), self.others - set(grants))

    def refusal(self, operation: str, used: Iterable[Grant]) -> DynashardError | None:
        """Return DynamoDB's refusal of a request that uses these grants; None if the role has all of them."""
        missing = sorted(set(used) - self.grants)
        if not missing:
            return None
        resource, action = missing[0]
        message = (
            f"User: arn:aws:sts::111122223333:assumed-role/{self.name}/function is not authorized to perform: "
            f"dynamodb:{action} on resource: arn:aws:dynamodb:us-east-1:111122223333:table/{resource} because no "
            f"identity-based policy allows the dynamodb:{action} action"
        )
        return classify(Refusal(operation, _DENIED_STATUS, "AccessDeniedException", message, {}))


def _named(resource: str) -> str:
    found = _RESOURCE.fullmatch(resource)
    return found[1] + (found[2] or "") if found else resource


@cache
def committed_role(function: str) -> Role:
    """Return the role of a function in the committed snapshot, which equals the synthesised template by a test."""
    stack, name = ROLES[function]
    return Role.of(json.loads((SNAPSHOTS / f"{stack}.json").read_text()), name)


def used_by(operation: str, request: Mapping[str, Any]) -> set[Grant]:
    """Return the tables and actions that IAM checks for a request: those of its steps for a transaction."""
    if operation.startswith("Transact"):
        steps = [next(iter(step.items())) for step in request["TransactItems"]]
        return {(inner["TableName"], _OF_STEPS.get(name, f"{name}Item")) for name, inner in steps}
    if "RequestItems" in request:
        return {(table, operation) for table in request["RequestItems"]}
    index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
    return {(request["TableName"] + index, operation)}


@dataclass
class RoleTransport(OneByOne):
    """Passes on the requests that a role allows, and refuses the others. `tables` are logical ids by tables' names."""

    inner: Transport
    role: Role
    tables: Mapping[str, str]
    used: set[Grant] = field(default_factory=set)

    @property
    def clock_offset(self) -> ClockOffset:
        return clock_offset_of(self.inner)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        refusal = self._refusal(operation, request)
        if refusal is not None:
            raise refusal
        return self.inner.call(operation, request, resend=resend)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        for call in calls:
            refusal = self._refusal(call.operation, call.request)
            if refusal is not None:
                raise refusal
        return self.inner.call_all(calls, concurrency=concurrency)

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        refusals = [self._refusal(call.operation, call.request) for call in calls]
        allowed = [call for call, refusal in zip(calls, refusals, strict=True) if refusal is None]
        answers = iter(self.inner.try_all(allowed, concurrency=concurrency))
        return [next(answers) if refusal is None else refusal for refusal in refusals]

    def close(self) -> None:
        self.inner.close()

    def _refusal(self, operation: str, request: Mapping[str, Any]) -> DynashardError | None:
        used = {(logical_id(resource, self.tables), action) for resource, action in used_by(operation, request)}
        self.used |= used
        return self.role.refusal(operation, used)


@dataclass
class RoleClient:
    """Passes calls of a service on to what stands for its botocore client, and refuses those that a role lacks.

    Args:
        names: the resources as the role names them, by the names in requests; others are named alike.
    """

    inner: Any
    service: str
    role: Role
    used: set[Grant] = field(default_factory=set)
    names: Mapping[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if not callable(method) or isinstance(method, type):
            return method

        def call(**request: Any) -> Any:
            # EventBridge's call names the bus in each entry.
            naming = request["Entries"][0] if name == "put_events" else request
            named = next((naming[each] for each in _NAMING if each in naming), "*")
            action = "".join(word.title() for word in name.removesuffix("_batch").split("_"))
            grant = (self.names.get(named, named), f"{self.service}:{action}")
            self.used.add(grant)
            if grant not in self.role.all:
                error = {"Code": "AccessDenied", "Message": f"not authorized to perform: {grant[1]} on {grant[0]}"}
                raise ClientError({"Error": error}, action)
            return method(**request)

        return call


def logical_id(resource: str, tables: Mapping[str, str]) -> str:
    """Return a table or index with the table's logical id; an unknown table, which no role allows, as it is."""
    table, slash, index = resource.partition("/")
    return tables.get(table, table) + slash + index


def as_function(function: str, transport: Transport, table: str, topology: str, idempotency: str = "") -> Transport:
    """Return a transport with the rights of a deployed function on these tables."""
    tables = {table: "Table", topology: "Topology", idempotency: "Idempotency"}
    return RoleTransport(transport, committed_role(function), tables)
