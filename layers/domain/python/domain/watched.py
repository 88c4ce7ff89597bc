"""Roll-ups of plays: the request and its answer, for REST and direct invocation."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from domain.fields import in_utc
from domain.plays import PLAYS
from dynashard import Dynashard

Level = Literal["minute", "hour", "day", "month"]
Time = Annotated[datetime, AfterValidator(in_utc)]


class PlaysWanted(BaseModel):
    """The parameters of a request for roll-ups."""

    level: Level = Field(description="The length of the spans. Months are of whole series.")
    series: str | None = Field(None, description="The series; for months, all series if it is missing.")
    episode: str | None = Field(None, description="The episode; not for months.")
    start: Time = Field(alias="from", description="Spans that begin from this time on.")
    end: Time = Field(alias="to", description="Spans that begin before this time.")


class Plays(BaseModel):
    """The plays of a span of time."""

    series: str
    episode: str | None = None
    level: Level
    start: datetime
    pings: int
    seconds: int


class PlaysList(BaseModel):
    """Spans with plays, in order."""

    items: list[Plays]


def plays(db: Dynashard, tenant_id: str, wanted: PlaysWanted) -> list[dict[str, object]]:
    """Return the spans as documents. Spans of a whole series have no episode. Cost: as `RollUps.read`."""
    given = {"tenant_id": tenant_id, "series": wanted.series, "episode": wanted.episode}
    group = {name: value for name, value in given.items() if value is not None}
    rows = PLAYS.read(db, group, level=wanted.level, start=wanted.start, end=wanted.end)
    return [row.model_dump(mode="json", include=set(Plays.model_fields)) for row in rows]
