"""The roles of the deployed functions, and a transport that refuses what such a role lacks, as DynamoDB does."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dynashard.errors import DynashardError
from dynashard.transport.classification import Refusal, classify
from dynashard.transport.interface import Call, Resend, Transport, Wire
from tests.infra.templates import ROOT, statements
from tests.one_by_one import OneByOne

SNAPSHOTS = ROOT / "tests" / "infra" / "snapshots"
ROLES = {
    "api": ("Api", "ApiRole"),
    "commands": ("Commands", "CommandsRole"),
    "writer": ("Writer", "WorkerRole"),
    "changes": ("Changes", "FollowRole"),
}
"""The stacks and roles of the functions that serve items, by the functions' names."""
_ON_TABLE = re.compile(r"(?:GetAtt|^<)(Table|Topology|Idempotency)\.?Arn[0-9A-F]*>(/index/\w+)?$")
_OF_STEPS = {"ConditionCheck": "ConditionCheckItem", "Delete": "DeleteItem", "Get": "GetItem", "Put": "PutItem"}
_DENIED_STATUS = 400

Grant = tuple[str, str]
"""A table (or `<table>/index/<slot>`) and an action on it without `dynamodb:`."""


@dataclass(frozen=True)
class Role:
    """What a role may do on the tables, which are named by their logical ids."""

    name: str
    grants: frozenset[Grant]

    @classmethod
    def of(cls, template: Mapping[str, Any], name: str) -> "Role":
        """Read a role in a template."""
        found = {
            (match[1] + (match[2] or ""), action.removeprefix("dynamodb:"))
            for resource, actions in statements(template, name).items()
            if (match := _ON_TABLE.search(resource))
            for action in actions
        }
        return cls(name, frozenset(found))

    def without(self, *grants: Grant) -> "Role":
        """Return the same role with less."""
        assert self.grants.issuperset(grants)
        return Role(self.name, self.grants - set(grants))

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


def logical_id(resource: str, tables: Mapping[str, str]) -> str:
    """Return a table or index with the table's logical id; an unknown table, which no role allows, as it is."""
    table, slash, index = resource.partition("/")
    return tables.get(table, table) + slash + index


def as_function(function: str, transport: Transport, table: str, topology: str, idempotency: str = "") -> Transport:
    """Return a transport with the rights of a deployed function on these tables."""
    tables = {table: "Table", topology: "Topology", idempotency: "Idempotency"}
    return RoleTransport(transport, committed_role(function), tables)
