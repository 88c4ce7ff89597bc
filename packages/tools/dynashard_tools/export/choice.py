"""Which items an export includes."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any

from dynashard import Entity, EntityDefinition, Filter, definition
from dynashard.entity.checks import plain_types
from dynashard_serving.documents import TENANT
from dynashard_tools.entities import tenant_of
from dynashard_tools.failure import CommandError

_TIMES = ("at", "created_at")


@dataclass(frozen=True, slots=True)
class Choice:
    """An entity's items, of all times and tenants or of some.

    Attributes:
        time: the field that is compared with the bounds; None without bounds.
        start, end: the bounds; the end is exclusive.
    """

    model: type[Entity]
    time: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    tenant: str | None = None

    @property
    def entity(self) -> EntityDefinition[Any]:
        """The entity's definition."""
        return definition(self.model)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The choice as conditions that DynamoDB applies."""
        return self.filters_within(())

    def filters_within(self, known: Container[str]) -> tuple[Filter, ...]:
        """The same conditions for the items of a logical partition with `known` fields.

        The tenant is not compared if the partition says it. So an item that claims another tenant is judged.
        """
        found = [] if self.tenant is None or TENANT in known else [Filter(TENANT, "=", self.tenant)]
        if self.time is not None and self.start is not None and self.end is not None:
            found += [Filter(self.time, ">=", self.start), Filter(self.time, "<", self.end)]
        return tuple(found)

    def includes(self, item: Entity) -> bool:
        """Whether an item is chosen."""
        if self.tenant is not None and getattr(item, TENANT) != self.tenant:
            return False
        if self.time is None or self.start is None or self.end is None:
            return True
        at = getattr(item, self.time)
        return at is not None and self.start <= at < self.end

    def as_dict(self) -> Mapping[str, Any]:
        """For the summary."""
        return {
            "entity": self.entity.name,
            "tenant": self.tenant,
            "from": None if self.start is None else self.start.isoformat(),
            "to": None if self.end is None else self.end.isoformat(),
        }


def choose(model: type[Entity], *, day: str | None, month: str | None, time: str | None, tenant: str | None) -> Choice:
    """Return the choice that a command's options make.

    `day` and `month` are in UTC, such as `2026-11-20` and `2026-11`. `time` is the field to compare; by default `at` or
    `created_at`.

    Raises:
        CommandError: the options contradict each other, or the entity has no such field.
    """
    if tenant is not None and TENANT not in model.model_fields:
        raise CommandError(f"{definition(model).name} has no {TENANT}: leave --tenant out")
    tenant, period = tenant and tenant_of(tenant), period_of(day, month)
    if period is None:
        if time is not None:
            raise CommandError("--time names the field that --day or --month is compared with: give one of them")
        return Choice(model, tenant=tenant)
    start, end = period
    return Choice(model, _time_field(model, time), start, end, tenant)


def period_of(day: str | None, month: str | None) -> tuple[datetime, datetime] | None:
    """Return the start and the end, which is exclusive, of a day or a month in UTC; None without either.

    Raises:
        CommandError: both are given, or one is not written like 2026-11-20 or 2026-11.
    """
    if day is not None and month is not None:
        raise CommandError("give --day or --month, not both")
    if day is not None:
        start = _parsed(day, "%Y-%m-%d", "--day", "2026-11-20")
        return start, start + timedelta(days=1)
    if month is not None:
        start = _parsed(month, "%Y-%m", "--month", "2026-11")
        return start, (start + timedelta(days=32)).replace(day=1)
    return None


def _parsed(text: str, form: str, option: str, example: str) -> datetime:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        raise CommandError(f"{option} is {text!r}; write it like {example}") from None


def _time_field(model: type[Entity], name: str | None) -> str:
    fields = model.model_fields
    times = [each for each, field in fields.items() if plain_types(field.annotation) - {NoneType} == {datetime}]
    if name is None:
        name = next((each for each in _TIMES if each in times), None)
    entity = definition(model)
    if not set(times) - {entity.expires}:
        raise CommandError(f"{entity.name} has no time to choose a day or month by: leave --day and --month out")
    if name is None or name not in times:
        known = ", ".join(each for each in times if each != entity.expires)
        raise CommandError(f"--day and --month of {entity.name} need a time: set --time to one of {known}")
    if name == entity.expires:
        raise CommandError("--time cannot be the time of expiry: name another field")
    return name
