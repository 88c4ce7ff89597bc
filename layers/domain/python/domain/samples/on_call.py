"""Who is on call for a schedule: at a time, and over a range."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field, model_validator

from domain.samples.rota import Source, Turn, rota
from domain.samples.schedules import RotaTime
from domain.samples.teams import Override, Schedule, Shift
from dynashard import Dynashard
from dynashard_serving.declare import endpoint

MOST_DAYS: Final = 92
"""The longest range of a rota."""
AHEAD: Final = timedelta(days=14)
"""How far ahead the end of a turn is looked for."""


class OnCallWanted(BaseModel):
    """The parameters of a request for who is on call."""

    at: RotaTime | None = Field(None, description="The time; now if it is left out.")


class OnCall(BaseModel):
    """Who is on call at a time. Nobody is if `user_id` is null."""

    at: datetime
    user_id: str | None
    source: Source | None
    """What says so: a layer, a shift or an override."""
    source_id: str | None
    """The id of the shift or the override, or the number of the layer, from 1 on."""
    until: datetime | None
    """When that ends; null if it does not within 14 days."""
    next_user_id: str | None
    """Who is on call then."""


class RotaWanted(BaseModel):
    """The parameters of a request for a rota."""

    start: RotaTime = Field(alias="from", description="The beginning.")
    end: RotaTime = Field(alias="to", description=f"The end, at most {MOST_DAYS} days later.")

    @model_validator(mode="after")
    def _within_bounds(self) -> Self:
        if not timedelta() < self.end - self.start <= timedelta(days=MOST_DAYS):
            raise ValueError(f"to must be after from, by at most {MOST_DAYS} days")
        return self


class RotaTurn(BaseModel):
    """A time in which a user is on call, or nobody if `user_id` is null. The next turn starts when it ends."""

    starts_at: datetime
    ends_at: datetime
    user_id: str | None
    source: Source | None
    source_id: str | None


@endpoint(path="on-call", of=Schedule, summary="Say who is on call")
def on_call(db: Dynashard, schedule: Schedule, wanted: OnCallWanted) -> OnCall:
    """Says who is on call for a schedule at a time, and until when."""
    at = wanted.at or datetime.fromtimestamp(db.store.runtime.clock(), UTC)
    now, *later = turns(db, schedule, at, at + AHEAD)
    return OnCall(
        at=at,
        user_id=now.user,
        source=now.source,
        source_id=now.of or None,
        until=now.end if later else None,
        next_user_id=later[0].user if later else None,
    )


@endpoint(path="rota", of=Schedule, summary="List who is on call over a range")
def schedule_rota(db: Dynashard, schedule: Schedule, wanted: RotaWanted) -> list[RotaTurn]:
    """Lists who is on call for a schedule over a range, turn by turn; a gap is a turn of nobody."""
    return [
        RotaTurn(
            starts_at=turn.start, ends_at=turn.end, user_id=turn.user, source=turn.source, source_id=turn.of or None
        )
        for turn in turns(db, schedule, wanted.start, wanted.end)
    ]


def turns(db: Dynashard, schedule: Schedule, start: datetime, end: datetime) -> list[Turn]:
    """Return who is on call for a schedule between two times.

    Raises `UndecodableItemError` if a shift or an override does not fit: it may say that somebody else is on call.

    Cost: 1 consistent Query of all shifts and overrides of the schedule: 1 read unit for about 25 of them.
    """
    stored: dict[Source, list[Turn]] = {Source.SHIFT: [], Source.OVERRIDE: []}
    for source, turn in _stored(db, schedule):
        stored[source].append(turn)
    zone, (shifts, overrides) = ZoneInfo(schedule.time_zone), stored.values()
    return rota(zone, schedule.layers, shifts, overrides, start=start, end=end)


def _stored(db: Dynashard, schedule: Schedule) -> Iterator[tuple[Source, Turn]]:
    items = db.collection(Shift, Override).items(
        tenant_id=schedule.tenant_id,
        prefix=f"team_{schedule.team_id}#schedule_{schedule.schedule_id}#",
        consistent=True,
        strict=True,
        limit=1000,
    )
    for each in items:
        source, name = (
            (Source.OVERRIDE, each.override_id) if isinstance(each, Override) else (Source.SHIFT, each.shift_id)
        )
        yield source, Turn(each.starts_at, each.ends_at, each.user_id, source, name)
