"""The parts of a schedule: layers of users who take turns, and the times of a week in which they do."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Annotated, Final, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from domain.samples.fields import Moment, ShortText
from domain.samples.rota import Unit

YEARS: Final = range(2000, 2200)
"""The years of rotas."""
_OF_THE_MACHINE: Final = ("localtime", "posix/", "posixrules", "right/")
"""What operating systems add: the machine's own zone, and clocks with leap seconds. Other machines do not have them."""


def _known(name: str) -> str:
    if name.startswith(_OF_THE_MACHINE) or not _exists(name):
        raise ValueError("write a zone of the IANA database, such as Europe/Berlin")
    return name


def _exists(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _in_years(at: datetime) -> datetime:
    # The stored time is in UTC, so it is the one that must be accepted.
    if at.astimezone(UTC).year not in YEARS:
        raise ValueError(f"write a time from {YEARS[0]} to {YEARS[-1]} in UTC")
    return at


ZoneName = Annotated[
    str,
    Field(min_length=1, max_length=64, examples=["Europe/Berlin"], description="A zone of the IANA database."),
    AfterValidator(_known),
]
RotaTime = Annotated[
    Moment, Field(description=f"A time from {YEARS[0]} to {YEARS[-1]} in UTC."), AfterValidator(_in_years)
]
ClockTime = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["08:00"])]


class Weekday(StrEnum):
    """A day of the week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class Restriction(BaseModel):
    """A part of the day, on the clock of the schedule's zone. One that closes before it opens ends on the next day."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    on: Annotated[list[Weekday], Field(max_length=7)] = []
    opens: ClockTime
    closes: ClockTime

    @property
    def days(self) -> Sequence[int]:
        """The days on which it starts, Monday is 0; none for every day."""
        names = list(Weekday)
        return [names.index(day) for day in self.on]

    @property
    def starts(self) -> time:
        """When it starts."""
        return time.fromisoformat(self.opens)

    @property
    def ends(self) -> time:
        """When it ends."""
        return time.fromisoformat(self.closes)


class Layer(BaseModel):
    """A rotation: its users take turns, each for so many hours, days or weeks, if `restrictions` do not say less."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    users: Annotated[list[ShortText], Field(min_length=1, max_length=50)]
    starts_at: Annotated[RotaTime, Field(examples=["2026-11-21T08:00:00Z"])]
    ends_at: Annotated[RotaTime | None, Field(examples=["2027-11-21T08:00:00Z"])] = None
    every: Annotated[int, Field(ge=1, le=366)] = 1
    unit: Unit = Unit.WEEKS
    restrictions: Annotated[list[Restriction], Field(max_length=7)] = []

    @property
    def windows(self) -> Sequence[Restriction]:
        """When somebody of the layer is on call; none for always."""
        return self.restrictions

    @model_validator(mode="after")
    def _ends_after_start(self) -> Self:
        if self.ends_at is not None and self.ends_at <= self.starts_at:
            raise ValueError("ends_at must be after starts_at")
        return self
