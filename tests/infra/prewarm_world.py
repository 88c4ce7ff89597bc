"""A table, a schedule and parameters in moto, the synthesised machine over the real steps, and faults in between."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from botocore.session import get_session
from moto import mock_aws

from dynashard import schema
from dynashard_serving.prewarm.plan import Limits
from dynashard_serving.prewarm.steps import Clients, Config, Steps
from tests.infra.states_language import Clock, Execution, Machine, StoppedError, TaskFailedError
from tests.infra.templates import of_type, short
from tests.roles import Grant, Role, RoleClient

TABLE = "prewarmed-table"
IDEMPOTENCY = "prewarmed-idempotency"
START = 1_800_000_000.0
REQUEST = {
    "ResponseURL": "https://cloudformation.example.com/answer",
    "RequestType": "Create",
    "StackId": "stack",
    "RequestId": "request-1",
    "LogicalResourceId": "Prewarm",
}
Mode = Literal["refused", "lost", "timeout", "late"]
"""An error before the step; an error after it; no answer before; no answer although it was done."""


@dataclass(frozen=True)
class Fault:
    """A fault of a step.

    Attributes:
        step: The step.
        mode: How.
        times: How often, from its first call on; None for ever.
    """

    step: str
    mode: Mode
    times: int | None = None


class SlowTable:
    """Adds time to moto's DynamoDB: a change of a table takes a while, during which the next change is refused.

    Answers about the table are eventually consistent: until `stale_until` they are those from before the last change.
    The idempotency table changes at once; `beside` has its changes.
    """

    def __init__(self, client: Any, clock: Clock, seconds: float) -> None:
        self._client = client
        self._clock = clock
        self.seconds = seconds
        self.stale_seconds = 0.0
        self.stale_until = 0.0
        self._busy_until = 0.0
        self._returned_at: float | None = None
        self._before: dict[str, Any] = {}
        self._unchanged: dict[str, Any] | None = None
        self.exceptions = client.exceptions
        self.updates: list[dict[str, Any]] = []
        self.beside: list[dict[str, Any]] = []

    @property
    def busy(self) -> bool:
        return self._clock.now < self._busy_until

    def describe_table(self, **request: Any) -> dict[str, Any]:
        if request["TableName"] == IDEMPOTENCY:
            described: dict[str, Any] = self._client.describe_table(**request)
            return described
        return self._before if self._clock.now < self.stale_until else self._described(**request)

    def _described(self, **request: Any) -> dict[str, Any]:
        # It is polled a thousand times, and moto takes milliseconds.
        if self._unchanged is None:
            self._unchanged = self._client.describe_table(**request)
        answer = deepcopy(self._unchanged)
        if self._returned_at is not None:
            returned = datetime.fromtimestamp(self._returned_at, UTC)
            answer["Table"]["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] = returned
        if self.busy:
            answer["Table"]["TableStatus"] = "UPDATING"
        return answer

    def by_hand(self, operation: str, **request: Any) -> None:
        """Change or delete the table as somebody else does, at once."""
        getattr(self._client, operation)(**request)
        self._unchanged = None

    def update_table(self, **request: Any) -> None:
        if request["TableName"] == IDEMPOTENCY:
            self.beside.append(request)
            self._client.update_table(**request)
            return
        if self.busy:
            raise self.exceptions.ResourceInUseException(
                {"Error": {"Code": "ResourceInUseException", "Message": "being changed"}}, "UpdateTable"
            )
        self._before = self._described(TableName=request["TableName"])
        self.stale_until = self._clock.now + self.stale_seconds
        self._client.update_table(**request)
        self._unchanged = None
        self.updates.append(request)
        if request.get("BillingMode") == "PAY_PER_REQUEST":
            self._returned_at = self._clock.now
        self._busy_until = self._clock.now + self.seconds


class World:
    """The resources of a pre-warm, with simulated time.

    Args:
        definition: The machine's definition, as synthesised.
        allocation_seconds: How long the table takes for a change.
    """

    def __init__(self, definition: Mapping[str, Any], allocation_seconds: float) -> None:
        self.clock = Clock(START)
        self.dynamodb, self.ssm, self.scheduler = (client(name) for name in ("dynamodb", "ssm", "scheduler"))
        create_table(self.dynamodb)
        create_idempotency_table(self.dynamodb)
        self.table = SlowTable(self.dynamodb, self.clock, allocation_seconds)
        self.answers: list[dict[str, Any]] = []
        self.log: list[str] = []
        self.calls: list[str] = []
        self.faults: list[Fault] = []
        self.stop_after: tuple[str, int] | None = None
        self.meanwhile: Callable[[str], None] = lambda _step: None
        self.config = config()
        self._definition = definition
        self.role: Role | None = None
        self.used: set[Grant] = set()

    def run(self, name: str = "run-1", **changes: Any) -> Execution:
        """Run the machine for one request of CloudFormation."""
        data = {"mode": "warm", "request": REQUEST, "wanted": wanted(), **changes}
        return Machine(self._definition, self._invoke, self.clock).run(data, name)

    @property
    def on_demand(self) -> bool:
        """Whether the table is on-demand, also while it changes."""
        described = self.dynamodb.describe_table(TableName=TABLE)["Table"]
        return bool(described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST")

    def described(self) -> dict[str, Any]:
        table: dict[str, Any] = self.dynamodb.describe_table(TableName=TABLE)["Table"]
        return table

    def let_the_stop_loss_act(self) -> int:
        """Act on the schedule at its times until its end, and return how often it acted."""
        acted = 0
        for schedule in self.scheduler.list_schedules()["Schedules"]:
            full = self.scheduler.get_schedule(Name=schedule["Name"])
            assert full["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:dynamodb:updateTable"
            assert full["State"] == "ENABLED"
            for at in firings(full):
                self.clock.now = max(self.clock.now, at)
                if self.on_demand:
                    break  # nothing is left that could switch it again
                try:
                    self.table.update_table(**json.loads(full["Target"]["Input"]))
                except self.table.exceptions.ResourceInUseException:
                    continue
                acted += 1
        return acted

    def _invoke(self, _resource: str, payload: Mapping[str, Any], seconds: float) -> Any:
        step = payload["step"]
        self.calls.append(step)
        count = self.calls.count(step)
        self.meanwhile(step)
        fault = next((f for f in self.faults if f.step == step and (f.times is None or count <= f.times)), None)
        done = fault is None or fault.mode in ("lost", "late")
        try:
            result = self._do(payload) if done else None
        finally:
            if self.stop_after == (step, count):
                raise StoppedError("ABORTED")
        if fault is not None:
            timed_out = fault.mode in ("timeout", "late")
            self.clock.now += seconds if timed_out else 1
            raise TaskFailedError("States.Timeout" if timed_out else "Lambda.Unknown", "injected")
        return result

    def _do(self, payload: Mapping[str, Any]) -> Any:
        steps = Steps(
            Clients(
                dynamodb=self._allowed("dynamodb", self.table),
                ssm=self._allowed("ssm", self.ssm),
                scheduler=self._allowed("scheduler", self.scheduler),
            ),
            self.config,
            clock=self.clock,
            send=lambda _url, body: self.answers.append(json.loads(body)),
            log=self.log.append,
        )
        try:
            return steps.run(payload)
        except Exception as error:  # Lambda's runtime reports any exception by the name of its class
            cause = json.dumps({"errorMessage": str(error), "errorType": type(error).__name__})
            raise TaskFailedError(type(error).__name__, cause) from error

    def _allowed(self, service: str, client: Any) -> Any:
        """Hold calls of a client against the role, if there is one."""
        if self.role is None:
            return client
        arns = {self.config.memory: "parameter", self.config.stop_loss: "schedule"}
        of_role = {part: name for name, _ in self.role.all for part in arns.values() if f":{part}/" in name}
        tables = {TABLE: "Table", IDEMPOTENCY: "Idempotency"}
        names = {**tables, **{name: of_role.get(part, part) for name, part in arns.items()}}
        return RoleClient(client, service, self.role, self.used, names)


@contextmanager
def world(definition: Mapping[str, Any], *, allocation_seconds: float = 600.0) -> Iterator[World]:
    """Make a new on-demand table that was never pre-warmed."""
    with mock_aws():
        yield World(definition, allocation_seconds)


def wanted(way: str = "provisioned", write_units: int = 100_000, idempotency: int = 4_000) -> dict[str, str]:
    """Properties of the custom resource, as CloudFormation hands them over."""
    return {
        "Way": way,
        "WriteUnits": str(write_units),
        "IndexWriteUnits": str(write_units),
        "ReadUnits": "12000",
        "IdempotencyWriteUnits": str(idempotency),
    }


def config() -> Config:
    return Config(
        table=TABLE,
        idempotency=IDEMPOTENCY,
        memory="/dynashard/prod/prewarm",
        limits=Limits(200_000, 0.00065, 0.00013),
        stop_loss="dynashard-prod-stop-loss",
        stop_loss_role="arn:aws:iam::123456789012:role/stop-loss",
        max_read_units=40_000,
        max_write_units=30_000,
    )


def definition_in(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of the only state machine of a template."""
    (machine,) = of_type(template, "AWS::StepFunctions::StateMachine").values()
    definition: dict[str, Any] = json.loads(short(machine["Properties"]["DefinitionString"]))
    return definition


def firings(schedule: Mapping[str, Any]) -> list[float]:
    """Return the times when a schedule fires, in epoch seconds."""
    expression = schedule["ScheduleExpression"]
    if expression.startswith("at("):
        return [datetime.fromisoformat(expression[3:-1]).replace(tzinfo=UTC).timestamp()]
    assert expression == "rate(5 minutes)"
    start, end = schedule["StartDate"].timestamp(), schedule["EndDate"].timestamp()
    return [start + 300 * n for n in range(int((end - start) // 300) + 1)]


@cache
def client(service: str) -> Any:
    """Return a cached client, because reading a service's description takes longer than a whole pre-warm here."""
    return get_session().create_client(
        service,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 -- moto's
    )


def create_idempotency_table(client: Any) -> None:
    """Create the on-demand idempotency table."""
    client.create_table(
        TableName=IDEMPOTENCY,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": schema.IDEMPOTENCY_KEY, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": schema.IDEMPOTENCY_KEY, "KeyType": "HASH"}],
    )


def create_table(client: Any) -> None:
    """Create an on-demand table with the keys and indexes of the stored format."""
    indexes = ("GSI1", "GSI2", "GSI3")
    names = ["PK", "SK", *(f"{index}{part}" for index in indexes for part in ("PK", "SK"))]

    def keys(prefix: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": f"{prefix}PK", "KeyType": "HASH"},
            {"AttributeName": f"{prefix}SK", "KeyType": "RANGE"},
        ]

    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=keys(""),
        GlobalSecondaryIndexes=[
            {"IndexName": index, "KeySchema": keys(index), "Projection": {"ProjectionType": "ALL"}} for index in indexes
        ],
    )


def switches(here: World) -> list[str]:
    """Return the modes that the table was switched to, in order."""
    return [update["BillingMode"] for update in here.table.updates]
