"""Settings of the table's capacity: on demand, provisioned with target tracking, and steps by schedule."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from dynashard import schema
from dynashard_cdk.schedule_expressions import expression, time_zone
from dynashard_cdk.sections import Section

Way = Literal["read", "write"]
"""The direction that units are for."""
WAYS: Final[tuple[Way, ...]] = ("read", "write")

TABLE: Final = ""
"""The table itself among the names of its indexes."""
RESOURCES: Final = (TABLE, *schema.INDEX_SLOTS)
MOST_STEPS: Final = 24
"""DynamoDB lowers capacity four times at any time of a day, and then once an hour."""
DEFAULT_TARGET_PERCENT: Final = 70
DEFAULT_TIME_ZONE: Final = "UTC"

Units = Annotated[int, Field(ge=1)]


def _slot(name: str) -> str:
    if name not in schema.INDEX_SLOTS:
        raise ValueError(f"there is no index {name}; there are {', '.join(schema.INDEX_SLOTS)}")
    return name


Slot = Annotated[str, AfterValidator(_slot)]


class Bounds(NamedTuple):
    """The least and the most units a second of the table or of an index."""

    lowest: int
    highest: int


class CapacityBounds(Section):
    """Bounds of provisioned units a second; None for those of the table."""

    min_read_units: Units | None = None
    max_read_units: Units | None = None
    min_write_units: Units | None = None
    max_write_units: Units | None = None

    def given(self, way: Way) -> tuple[int | None, int | None]:
        """The bounds of one direction, as they were written."""
        return getattr(self, f"min_{way}_units"), getattr(self, f"max_{way}_units")


class IndexSettings(CapacityBounds):
    """Capacity of an index that is not that of the table."""

    target_percent: int | None = Field(default=None, ge=20, le=90)


class ScheduleStep(CapacityBounds):
    """Bounds of capacity from a time on. A bound that it omits is the one without a schedule."""

    at: Annotated[str, AfterValidator(expression)]
    """When, as an expression of EventBridge Scheduler; `17:00` is every day at that time."""
    indexes: dict[Slot, CapacityBounds] = Field(default_factory=dict)
    """Bounds of indexes that are not those of the table."""


class TableSettings(CapacityBounds):
    """Capacity of the table and of each of its indexes.

    Attributes:
        mode: `on_demand` is billed by request, at most `max_*_units` a second. `provisioned` is billed by the hour, and
            target tracking keeps it between `min_*_units` and `max_*_units`.
        start_read_units: what a table that was on-demand starts with; None for the least.
        start_write_units: the same for writes.
        target_percent: the part of the provisioned units that is to be used; None for 70.
        indexes: bounds of indexes that are not those of the table.
        schedule: other bounds at times of the day or the week, or once.
        time_zone: the zone of these times; None for UTC.

    A maximum must stay below the account's quota for a table, 40,000 unless AWS has raised it.
    """

    mode: Literal["on_demand", "provisioned"] = "on_demand"
    start_read_units: Units | None = None
    start_write_units: Units | None = None
    target_percent: int | None = Field(default=None, ge=20, le=90)
    indexes: dict[Slot, IndexSettings] = Field(default_factory=dict)
    schedule: tuple[ScheduleStep, ...] = Field(default=(), max_length=MOST_STEPS)
    time_zone: str | None = None

    @property
    def provisioned(self) -> bool:
        """Whether capacity is billed by the hour."""
        return self.mode == "provisioned"

    @property
    def zone(self) -> str:
        """The time zone of the schedule."""
        return self.time_zone or DEFAULT_TIME_ZONE

    def bounds(self, way: Way, resource: str = TABLE, step: ScheduleStep | None = None) -> Bounds:
        """Return the bounds of provisioned units of the table or an index, without a schedule or from a step on.

        A step of the table applies to every index too, unless the index has bounds of its own for that direction.
        """
        table = _filled(self.given(way), Bounds(1, 1))
        own = self.indexes[resource].given(way) if resource in self.indexes else (None, None)
        usual = _filled(own, table)
        if step is None:
            return usual
        if resource in step.indexes and any(step.indexes[resource].given(way)):
            return _filled(step.indexes[resource].given(way), usual)
        return usual if any(own) else _filled(step.given(way), usual)

    def start(self, way: Way, resource: str = TABLE) -> int:
        """Return the units that a table that was on-demand starts with."""
        bounds = self.bounds(way, resource)
        given: int | None = getattr(self, f"start_{way}_units")
        return min(max(given or bounds.lowest, bounds.lowest), bounds.highest)

    def target(self, resource: str = TABLE) -> int:
        """Return the part of the provisioned units that is to be used, in percent."""
        own = self.indexes[resource].target_percent if resource in self.indexes else None
        return own or self.target_percent or DEFAULT_TARGET_PERCENT

    def steps(self, way: Way, resource: str) -> list[tuple[ScheduleStep, Bounds]]:
        """Return the steps of the schedule with the bounds that each sets; none if no step changes them."""
        usual = self.bounds(way, resource)
        steps = [(step, self.bounds(way, resource, step)) for step in self.schedule]
        return steps if any(bounds != usual for _, bounds in steps) else []

    @field_validator("time_zone")
    @classmethod
    def _zone_is_known(cls, name: str | None) -> str | None:
        return None if name is None else time_zone(name)

    @model_validator(mode="after")
    def _fits_its_mode(self) -> Self:
        if self.provisioned:
            self._check_bounds()
            self._check_schedule()
        else:
            self._check_on_demand()
        return self

    def _check_on_demand(self) -> None:
        unused = self.model_fields_set - {"mode", "max_read_units", "max_write_units"}
        if unused:
            names = ", ".join(sorted(unused))
            raise ValueError(f'{names}: only for provisioned capacity. Remove it, or add "mode": "provisioned"')

    def _check_bounds(self) -> None:
        names = [f"{end}_{way}_units" for way in WAYS for end in ("min", "max")]
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise ValueError(
                f"provisioned capacity needs {' and '.join(missing)}: the least and the most units a second, of the "
                "table and of each index"
            )
        _check_order((self.bounds(way), way, "") for way in WAYS)
        _check_order((self.bounds(way, index), way, f"indexes.{index}: ") for index in self.indexes for way in WAYS)
        for way in WAYS:
            given, bounds = getattr(self, f"start_{way}_units"), self.bounds(way)
            if given is not None and not bounds.lowest <= given <= bounds.highest:
                raise ValueError(
                    f"start_{way}_units {given} must be between min_{way}_units {bounds.lowest} and "
                    f"max_{way}_units {bounds.highest}"
                )

    def _check_schedule(self) -> None:
        if self.time_zone is not None and not self.schedule:
            raise ValueError("time_zone has no effect without a schedule: add steps to schedule, or remove it")
        seen: dict[str, int] = {}
        for number, step in enumerate(self.schedule):
            name = f"schedule.{number}"
            if step.model_fields_set == {"at"}:
                raise ValueError(f"{name}: names no units; write what changes, such as min_write_units")
            if step.at in seen:
                raise ValueError(f"{name}: is at the time of schedule.{seen[step.at]} too ({step.at}); join both steps")
            seen[step.at] = number
            _check_order(
                (self.bounds(way, resource, step), way, f"{name}: {f'for {resource}, ' if resource else ''}")
                for resource in RESOURCES
                for way in WAYS
            )


def _filled(given: tuple[int | None, int | None], otherwise: Bounds) -> Bounds:
    """Return the bounds that were written, and others for those that were not."""
    return Bounds(given[0] or otherwise.lowest, given[1] or otherwise.highest)


def _check_order(found: Iterable[tuple[Bounds, Way, str]]) -> None:
    for (lowest, highest), way, name in found:
        if lowest > highest:
            raise ValueError(
                f"{name}min_{way}_units {lowest} is above max_{way}_units {highest}; lower the one or raise the other"
            )
