"""The steps of a pre-warm. Each can be run again at any time: after an error, a timeout or a lost answer.

The state machine (`dynashard_cdk.prewarm_machine`) has the order, the retries and what follows a failure.
Clients and clock are passed in.

DescribeTable is eventually consistent: an answer may be older than the last change. So an answer that says on-demand
proves a return only if the time of the return in it is after the switch to provisioned.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Final

from dynashard_serving.prewarm.answer import Send, answer, outcome_of
from dynashard_serving.prewarm.errors import NotYetError, PrewarmInterruptedError
from dynashard_serving.prewarm.plan import (
    TABLE,
    Limits,
    Memory,
    Plan,
    TableState,
    Units,
    WantedThroughput,
    decide,
    decide_idempotency,
)

ON_DEMAND: Final = "PAY_PER_REQUEST"
STOP_LOSS_AFTER_SECONDS: Final = 3600
"""The stop-loss begins when CloudFormation has given up waiting, so that it never meets a run that is alive."""
STOP_LOSS_SECONDS: Final = 24 * 3600
STOP_LOSS_EVERY: Final = "rate(5 minutes)"
LAST_LOOK_SECONDS: Final = 900
"""After a run that ended well the stop-loss looks once more: a request that was given up may still arrive."""
SETTLED_SECONDS: Final = 600
"""A switch that no answer has shown by then was not executed."""

Client = Any  # boto3 makes its clients' methods at run time


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients of the services the steps call."""

    dynamodb: Client
    ssm: Client
    scheduler: Client


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of the function.

    Attributes:
        table: Name of the table.
        idempotency: Name of the idempotency table.
        memory: Name of the parameter that remembers earlier runs.
        limits: Ceiling and prices.
        stop_loss: Name of the schedule that switches back whatever happens; empty for the native way.
        stop_loss_role: Role it does so under.
        max_read_units: On-demand limit the table returns to; None for no limit.
        max_write_units: The same for writes.
    """

    table: str
    idempotency: str
    memory: str
    limits: Limits
    stop_loss: str = ""
    stop_loss_role: str = ""
    max_read_units: int | None = None
    max_write_units: int | None = None

    @property
    def switch_back(self) -> str:
        """The target of the stop-loss: EventBridge Scheduler's call of UpdateTable, in the partition of its role."""
        partition = self.stop_loss_role.split(":")[1]
        return f"arn:{partition}:scheduler:::aws-sdk:dynamodb:updateTable"


class Steps:
    """One pre-warm's steps, over one table."""

    def __init__(
        self, clients: Clients, config: Config, *, clock: Callable[[], float], send: Send, log: Callable[[str], None]
    ) -> None:
        self._clients = clients
        self._config = config
        self._clock = clock
        self._send = send
        self._log = log

    def run(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Run the step that the event names."""
        steps: dict[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
            "plan": self.plan,
            "raise": self.raise_warm_throughput,
            "raise_idempotency": self.raise_idempotency,
            "arm": self.arm,
            "switch": self.switch,
            "allocate": self.allocate,
            "remember": self.remember,
            "cancel": self.cancel,
            "restore": self.restore,
            "stand_down": self.stand_down,
            "report": self.report,
        }
        return steps[event["step"]](event["run"], event["input"])

    def plan(self, run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Decide what to do, take the table for this run, and say the cost before anything is spent."""
        state, memory = self._state(), self._memory()
        plan, beside = self._decide(run, data, state, memory), self._decide_idempotency(data)
        if plan.action == "switch":
            self._remember(replace(memory.about(state.table_id), run=run))
        reason = f"{plan.reason}; {beside.reason}"
        self._log(reason)
        return {"action": plan.action, "reason": reason, "dollars": round(plan.dollars + beside.dollars, 2)}

    def raise_warm_throughput(self, run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Raise warm throughput that is below the target; nothing if an earlier try has done it."""
        targets = dict(self._decide(run, data, self._state(), self._memory()).targets or {})
        if targets:
            table = targets.pop(TABLE, None)
            self._update(
                self._config.table,
                **({"WarmThroughput": _warm(table)} if table else {}),
                **_indexes({name: {"WarmThroughput": _warm(units)} for name, units in targets.items()}),
            )
        return {}

    def raise_idempotency(self, _run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Raise the warm throughput of the idempotency table; nothing if an earlier try has done it."""
        target = (self._decide_idempotency(data).targets or {}).get(TABLE)
        if target is not None:
            self._update(self._config.idempotency, WarmThroughput={"WriteUnitsPerSecond": target.write})
        return {}

    def arm(self, run: str, _data: Mapping[str, Any]) -> dict[str, Any]:
        """Note the run and set the stop-loss before anything is switched. Refused if another run has the table."""
        now = self._clock()
        self._remember(self._own(run).switched(run, now))
        start = now + STOP_LOSS_AFTER_SECONDS
        self._schedule(
            ScheduleExpression=STOP_LOSS_EVERY,
            StartDate=datetime.fromtimestamp(start, UTC),
            EndDate=datetime.fromtimestamp(start + STOP_LOSS_SECONDS, UTC),
        )
        return {"stop_loss_at": start}

    def switch(self, run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Switch the table to provisioned, unless it is changing or another run has it."""
        self._own(run)
        state = self._state()
        if state.on_demand:
            if not state.active:
                raise NotYetError("the table is changing")
            wanted = WantedThroughput.from_properties(data["wanted"])
            self._update(
                self._config.table,
                BillingMode="PROVISIONED",
                ProvisionedThroughput=_provisioned(wanted.units(TABLE)),
                **_indexes(
                    {
                        name: {"ProvisionedThroughput": _provisioned(wanted.units(name))}
                        for name in state.warm
                        if name != TABLE
                    }
                ),
            )
        return {}

    def allocate(self, run: str, _data: Mapping[str, Any]) -> dict[str, Any]:
        """Raise `NotYetError` until the partitions exist; fail if the table was switched back meanwhile."""
        memory, state = self._own(run), self._state()
        if not state.active:
            raise NotYetError("partitions are being allocated")
        if state.has_returned(memory):
            raise PrewarmInterruptedError("the table was switched back before its partitions were allocated")
        if state.on_demand:
            raise NotYetError("the table does not show its provisioned capacity yet")
        self._remember(replace(memory, provisioned=run))
        return {}

    def remember(self, run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Note that the table is warm, so that the same value never runs again."""
        memory = self._own(run)
        wanted = WantedThroughput.from_properties(data["wanted"])
        self._remember(replace(memory, warmed=max(memory.warmed, wanted.write_units)))
        return {}

    def cancel(self, run: str, _data: Mapping[str, Any]) -> dict[str, Any]:
        """Take the table over, so that a run that is still alive does not switch it again."""
        self._remember(replace(self._memory(), run=run))
        return {}

    def restore(self, _run: str, _data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table to on-demand; raise `NotYetError` until it is.

        Returns:
            With `proven`, whether the table has certainly returned since the last switch. It is False if no answer has
            shown that switch, so that it was probably not executed.
        """
        try:
            state = self._state()
        except self._clients.dynamodb.exceptions.ResourceNotFoundException:
            return {"table": "gone", "proven": True}
        if not state.on_demand:
            if state.active:
                indexes = [name for name in state.warm if name != TABLE]
                self._update(self._config.table, **self._on_demand(indexes))
            self._note_provisioned(state)
        if not (state.active and state.on_demand):
            raise NotYetError("the table is going back to on-demand")
        return {"table": "on-demand", "proven": self._proven(state)}

    def stand_down(self, _run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Leave the stop-loss one last look, after which it deletes itself. If no return is proven, leave it as it is.

        `data` is the execution's, with the result of `restore` in `done`.
        """
        if not data["done"]["proven"]:
            self._log("the return to on-demand is not proven: the stop-loss keeps looking until its end")
            return {}
        at = datetime.fromtimestamp(self._clock() + LAST_LOOK_SECONDS, UTC)
        try:
            self._clients.scheduler.get_schedule(Name=self._config.stop_loss)
        except self._clients.scheduler.exceptions.ResourceNotFoundException:
            return {}
        self._schedule(ScheduleExpression=f"at({at:%Y-%m-%dT%H:%M:%S})")
        return {}

    def report(self, _run: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Answer CloudFormation, and say whether an operator has to look."""
        outcome = outcome_of(data)
        self._log(outcome.reason)
        self._send(data["request"]["ResponseURL"], answer(data["request"], outcome))
        return {"ok": outcome.ok, "reason": outcome.reason}

    def _proven(self, state: TableState) -> bool:
        """Whether the table has returned; raise `NotYetError` while an answer may still be too old to say so."""
        memory = self._memory().about(state.table_id)
        if state.has_returned(memory):
            return True
        assert memory.last_switch is not None  # noqa: S101 -- without a switch it has returned
        run, began = memory.last_switch
        if memory.provisioned == run or self._clock() - began < SETTLED_SECONDS:
            raise NotYetError("no answer shows yet that the table has gone back to on-demand")
        return False

    def _note_provisioned(self, state: TableState) -> None:
        """Note that the last switch was executed, so that only a later return counts."""
        memory = self._memory().about(state.table_id)
        if memory.last_switch is not None and memory.provisioned != memory.last_switch[0]:
            self._remember(replace(memory, provisioned=memory.last_switch[0]))

    def _decide(self, run: str, data: Mapping[str, Any], state: TableState, memory: Memory) -> Plan:
        wanted = WantedThroughput.from_properties(data["wanted"])
        return decide(wanted, self._config.limits, state, memory, run=run, now=self._clock())

    def _decide_idempotency(self, data: Mapping[str, Any]) -> Plan:
        wanted = WantedThroughput.from_properties(data["wanted"])
        return decide_idempotency(wanted, self._config.limits, self._state(self._config.idempotency))

    def _state(self, table: str = "") -> TableState:
        return table_state(self._clients.dynamodb.describe_table(TableName=table or self._config.table)["Table"])

    def _update(self, table: str, **changes: Any) -> None:
        dynamodb = self._clients.dynamodb
        try:
            dynamodb.update_table(TableName=table, **changes)
        except (dynamodb.exceptions.ResourceInUseException, dynamodb.exceptions.LimitExceededException) as error:
            raise NotYetError(str(error)) from error

    def _memory(self) -> Memory:
        try:
            text = self._clients.ssm.get_parameter(Name=self._config.memory)["Parameter"]["Value"]
        except self._clients.ssm.exceptions.ParameterNotFound:
            return Memory()
        # A release after this one may remember more, and the table has to return all the same.
        known = {each.name for each in fields(Memory)}
        return Memory(**{name: value for name, value in json.loads(text).items() if name in known})

    def _remember(self, memory: Memory) -> None:
        self._clients.ssm.put_parameter(
            Name=self._config.memory, Value=json.dumps(asdict(memory)), Type="String", Overwrite=True
        )

    def _own(self, run: str) -> Memory:
        memory = self._memory()
        if memory.run != run:
            raise PrewarmInterruptedError(f"run {memory.run or 'unknown'} has the table now")
        return memory

    def _on_demand(self, indexes: list[str]) -> dict[str, Any]:
        """Changes that make the table on-demand, with the limits it was declared with."""
        limits = {
            name: value
            for name, value in (
                ("MaxReadRequestUnits", self._config.max_read_units),
                ("MaxWriteRequestUnits", self._config.max_write_units),
            )
            if value is not None
        }
        if not limits:
            return {"BillingMode": ON_DEMAND}
        return {
            "BillingMode": ON_DEMAND,
            "OnDemandThroughput": limits,
            **_indexes({name: {"OnDemandThroughput": limits} for name in indexes}),
        }

    def _schedule(self, **timing: Any) -> None:
        """Set the stop-loss. It calls DynamoDB itself, so that it acts even if our code fails."""
        scheduler = self._clients.scheduler
        indexes = [name for name in self._state().warm if name != TABLE]
        schedule = {
            "Name": self._config.stop_loss,
            "State": "ENABLED",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": self._config.switch_back,
                "RoleArn": self._config.stop_loss_role,
                "Input": json.dumps({"TableName": self._config.table, **self._on_demand(indexes)}),
                "RetryPolicy": {"MaximumRetryAttempts": 3},
            },
            **timing,
        }
        try:
            scheduler.create_schedule(**schedule)
        except scheduler.exceptions.ConflictException:
            scheduler.update_schedule(**schedule)


def table_state(table: Mapping[str, Any]) -> TableState:
    """What matters of DescribeTable's answer."""
    billing = table.get("BillingModeSummary", {})
    returned = billing.get("LastUpdateToPayPerRequestDateTime")
    indexes = table.get("GlobalSecondaryIndexes", [])
    return TableState(
        table_id=table.get("TableId", table["TableArn"]),
        on_demand=billing.get("BillingMode") == ON_DEMAND,
        active=table["TableStatus"] == "ACTIVE" and all(index["IndexStatus"] == "ACTIVE" for index in indexes),
        warm={TABLE: _present(table), **{index["IndexName"]: _present(index) for index in indexes}},
        returned_at=returned.timestamp() if returned else None,
    )


def _present(described: Mapping[str, Any]) -> Units:
    warm = described.get("WarmThroughput", {})
    return Units(int(warm.get("ReadUnitsPerSecond", 0)), int(warm.get("WriteUnitsPerSecond", 0)))


def _warm(units: Units) -> dict[str, int]:
    return {"ReadUnitsPerSecond": units.read, "WriteUnitsPerSecond": units.write}


def _provisioned(units: Units) -> dict[str, int]:
    return {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}


def _indexes(changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if not changes:
        return {}
    return {
        "GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": name, **change}} for name, change in changes.items()]
    }
