"""Decide what a pre-warm has to do. The functions are pure: no clock, no network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from dynashard_serving.prewarm.errors import PrewarmRefusedError

DAY_SECONDS: Final = 86_400
SWITCHES_A_DAY: Final = 4
"""DynamoDB lets a table go from provisioned to on-demand this often in 24 hours."""
SPARE_SWITCHES: Final = 1
"""Kept for an unplanned return, because a table that cannot return would stay provisioned for up to a day."""
BILLED_HOURS: Final = 2
"""Provisioned capacity is billed by the hour begun; a run takes under an hour, which may lie across two."""
TABLE: Final = ""
"""Key of the table itself among its indexes."""

Action = Literal["none", "raise", "switch"]


@dataclass(frozen=True, slots=True)
class WantedThroughput:
    """What the settings ask for. The idempotency table is left as it is for 0 units."""

    way: str
    write_units: int
    index_write_units: int
    read_units: int
    idempotency_write_units: int = 0

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Read the properties of the custom resource, which CloudFormation hands over as text."""
        return cls(
            way=str(properties["Way"]),
            write_units=int(properties["WriteUnits"]),
            index_write_units=int(properties["IndexWriteUnits"]),
            read_units=int(properties["ReadUnits"]),
            # A stack of an earlier release did not ask for them.
            idempotency_write_units=int(properties.get("IdempotencyWriteUnits", 0)),
        )

    def units(self, name: str) -> "Units":
        """Units wanted for the table or an index."""
        return Units(self.read_units, self.write_units if name == TABLE else self.index_write_units)


@dataclass(frozen=True, slots=True)
class Units:
    """Read and write units a second."""

    read: int
    write: int

    def at_least(self, other: "Units") -> "Units":
        """The larger of both, each way."""
        return Units(max(self.read, other.read), max(self.write, other.write))


@dataclass(frozen=True, slots=True)
class Limits:
    """What the settings allow, and the prices used to say what it will cost.

    Attributes:
        ceiling_write_units: Most write units that may be asked for.
        dollars_per_write_unit_hour: Of one provisioned write unit for an hour, and of one warm unit once.
        dollars_per_read_unit_hour: The same for reads.
    """

    ceiling_write_units: int
    dollars_per_write_unit_hour: float
    dollars_per_read_unit_hour: float

    def dollars(self, units: Units) -> float:
        """Price of these units for an hour."""
        return units.write * self.dollars_per_write_unit_hour + units.read * self.dollars_per_read_unit_hour


@dataclass(frozen=True, slots=True)
class TableState:
    """The table as DescribeTable shows it.

    Attributes:
        table_id: Its identity, which a new table of the same name does not share.
        on_demand: Whether it is billed by request.
        active: Whether neither it nor an index is changing.
        warm: Present warm throughput of the table (`TABLE`) and each index.
        returned_at: When it last went from provisioned to on-demand, in epoch seconds; None if never.
    """

    table_id: str
    on_demand: bool
    active: bool
    warm: Mapping[str, Units]
    returned_at: float | None = None

    def has_returned(self, memory: "Memory") -> bool:
        """Whether the table is on-demand, and this answer is not older than the last switch to provisioned."""
        last = memory.about(self.table_id).last_switch
        return self.on_demand and (last is None or (self.returned_at is not None and self.returned_at >= last[1]))


@dataclass(frozen=True, slots=True)
class Memory:
    """What earlier runs left behind.

    Attributes:
        run: The run that has the table now.
        table_id: The table it is about.
        warmed: Most write units it was ever warmed to.
        switches: Runs that switched, with the time they began, in epoch seconds.
        provisioned: The run whose switch has been seen on the table.
    """

    run: str = ""
    table_id: str = ""
    warmed: int = 0
    switches: Mapping[str, float] | None = None
    provisioned: str = ""

    def about(self, table_id: str) -> "Memory":
        """This memory if it is about the table, else an empty one: a new table has no past."""
        return self if self.table_id == table_id else Memory(table_id=table_id)

    def switched(self, run: str, now: float) -> "Memory":
        """With this run noted as one that switches, once however often it is noted."""
        recent = {name: at for name, at in (self.switches or {}).items() if now - at < DAY_SECONDS}
        return replace(self, run=run, switches={run: now, **recent})

    @property
    def last_switch(self) -> tuple[str, float] | None:
        """The run that was the last to switch the table, and when it began; None if none did."""
        return max((self.switches or {}).items(), key=lambda noted: noted[1], default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        action: `none`, `raise` warm throughput, or `switch` to provisioned and back.
        reason: One sentence for the log and the deployment.
        dollars: Most it will cost.
        targets: Warm throughput to raise to, of those that are below.
    """

    action: Action
    reason: str
    dollars: float = 0.0
    targets: Mapping[str, Units] | None = None


def decide(
    wanted: WantedThroughput, limits: Limits, state: TableState, memory: Memory, *, run: str, now: float
) -> Plan:
    """Return what a run has to do, or raise `PrewarmRefusedError`."""
    most = max(wanted.write_units, wanted.index_write_units, wanted.idempotency_write_units)
    if most > limits.ceiling_write_units:
        raise PrewarmRefusedError(
            f"{most} write units are above the ceiling of {limits.ceiling_write_units}: ask for fewer, or raise "
            "prewarm.ceiling_write_units in cdk.json if you accept the cost"
        )
    if wanted.way == "native":
        return _raise(wanted, limits, state)
    return _switch(wanted, limits, state, memory.about(state.table_id), run=run, now=now)


def decide_idempotency(wanted: WantedThroughput, limits: Limits, state: TableState) -> Plan:
    """Return what a run has to do with the idempotency table: it is on-demand, and raised, whatever the way."""
    present = state.warm[TABLE]
    target = Units(0, wanted.idempotency_write_units).at_least(present)
    if target == present:
        return Plan("none", "the idempotency table is warm already")
    dollars = limits.dollars(target) - limits.dollars(present)
    return Plan(
        "raise",
        f"raising that of the idempotency table to {target.write} write units; about ${dollars:.2f}, once",
        dollars,
        {TABLE: target},
    )


def _raise(wanted: WantedThroughput, limits: Limits, state: TableState) -> Plan:
    """Raise warm throughput. It can only go up, so throughput above the target is left alone."""
    targets = {
        name: target
        for name, present in state.warm.items()
        if (target := wanted.units(name).at_least(present)) != present
    }
    if not targets:
        return Plan("none", f"the table is warm for {wanted.write_units} write units already")
    dollars = sum(limits.dollars(targets[name]) - limits.dollars(state.warm[name]) for name in targets)
    names = ", ".join(name or "table" for name in targets)
    return Plan(
        "raise",
        f"raising the warm throughput of {names} to {wanted.write_units} write units; about ${dollars:.2f}, once",
        dollars,
        targets,
    )


def _switch(
    wanted: WantedThroughput, limits: Limits, state: TableState, memory: Memory, *, run: str, now: float
) -> Plan:
    if memory.warmed >= wanted.write_units:
        return Plan("none", f"the table was warmed to {memory.warmed} write units before")
    used = _switches_in_a_day(state, memory, run=run, now=now)
    if used >= SWITCHES_A_DAY - SPARE_SWITCHES:
        raise PrewarmRefusedError(
            f"the table went back to on-demand {used} times in the last 24 hours and may do so {SWITCHES_A_DAY} "
            "times: deploy again a day after the first of them"
        )
    dollars = BILLED_HOURS * sum(limits.dollars(wanted.units(name)) for name in state.warm)
    return Plan(
        "switch",
        f"provisioning {wanted.write_units} write units for under an hour, billed as at most {BILLED_HOURS}; "
        f"at most ${dollars:.2f}",
        dollars,
    )


def _switches_in_a_day(state: TableState, memory: Memory, *, run: str, now: float) -> int:
    """Count the other noted runs, and a return that no run explains because it was made by hand."""
    noted = [at for name, at in (memory.switches or {}).items() if name != run and now - at < DAY_SECONDS]
    returned = state.returned_at
    by_hand = returned is not None and now - returned < DAY_SECONDS and all(at > returned for at in noted)
    return len(noted) + by_hand
