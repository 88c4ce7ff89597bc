"""What was watched, span by span: the question and its answer, over REST and direct invocation alike."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from domain.fields import in_utc
from domain.plays import PLAYS
from dynashard import Dynashard

Level = Literal["minute", "hour", "day", "month"]
Time = Annotated[datetime, AfterValidator(in_utc)]


class PlaysWanted(BaseModel):
    """The question."""

    level: Level = Field(description="How long the spans are. Months are of whole series.")
    series: str | None = Field(None, description="Whose; all series if a month leaves it out.")
    episode: str | None = Field(None, description="Whose; not for months.")
    start: Time = Field(alias="from", description="Spans that begin from this time on.")
    end: Time = Field(alias="to", description="Spans that begin before this time.")


class Plays(BaseModel):
    """What was watched in a span of time."""

    series: str
    episode: str | None = None
    level: Level
    start: datetime
    pings: int
    seconds: int


class PlaysList(BaseModel):
    """Spans in which something was watched, in order."""

    items: list[Plays]


def plays(db: Dynashard, tenant_id: str, wanted: PlaysWanted) -> list[dict[str, object]]:
    """The spans, as documents: those of a whole series have no episode. Cost: as `RollUps.read`."""
    given = {"tenant_id": tenant_id, "series": wanted.series, "episode": wanted.episode}
    group = {name: value for name, value in given.items() if value is not None}
    rows = PLAYS.read(db, group, level=wanted.level, start=wanted.start, end=wanted.end)
    return [row.model_dump(mode="json", include=set(Plays.model_fields)) for row in rows]
