"""Roll-ups of pings over HTTP: what was watched of an episode or a series, span by span."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from aws_lambda_powertools.event_handler import Response
from pydantic import AfterValidator, BaseModel, Field

from domain import PLAYS
from dynashard.hosting.backend import Backend
from functions.api.describing import Operation, Schema, answer, operation
from functions.api.incoming import Incoming
from functions.api.parameters import in_utc
from functions.api.resource import PREFIX, TENANT
from functions.api.special import Served, Special, answered, asked, parameters_of

Level = Literal["minute", "hour", "day", "month"]
Time = Annotated[datetime, AfterValidator(in_utc)]


class Wanted(BaseModel):
    """The query."""

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


def _plays(backend: Backend, incoming: Incoming) -> Response[str]:
    wanted = asked(Wanted, incoming.query)
    group = {
        name: value for name, value in (("series", wanted.series), ("episode", wanted.episode)) if value is not None
    }
    rows = PLAYS.read(
        backend.entities, {TENANT: incoming.tenant, **group}, level=wanted.level, start=wanted.start, end=wanted.end
    )
    return answered({"items": [_shown(row) for row in rows]})


def _shown(row: Any) -> dict[str, Any]:
    document: dict[str, Any] = row.model_dump(mode="json", include=set(Plays.model_fields))
    return document


def _schemas() -> dict[str, Schema]:
    schema = PlaysList.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "PlaysList": schema}


def _documentation() -> Operation:
    answers = {"200": answer("The spans.", "PlaysList")}
    return {**operation("listPlays", "List roll-ups of pings", "pings", answers), "parameters": parameters_of(Wanted)}


ROLL_UPS: Final = Special(f"{PREFIX}/roll-ups", {"GET": Served(_plays, _documentation)}, _schemas)
