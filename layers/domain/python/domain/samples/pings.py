"""Pings, which video players send while they play."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from dynashard import Entity, Index, Key, Retention, Shards
from dynashard_serving.declare import Access, Window, serve

RETENTION: Final = Retention("at", months=3)
"""How long a ping is kept: until three months have passed after its own. Roll-ups are kept longer."""
YEARS: Final = range(2000, 2200)


def in_utc(value: datetime) -> datetime:
    """Return the same moment in UTC; refuse a time without a zone, or outside of `YEARS` in UTC."""
    moment = None
    with suppress(OverflowError):
        moment = value.astimezone(UTC) if value.tzinfo is not None else None
    if moment is None or moment.year not in YEARS:
        raise ValueError("write a time with its zone, from 2000 to 2199 in UTC, such as 2026-11-21T12:00:00Z")
    return moment


Moment = Annotated[datetime, AfterValidator(in_utc)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]


@serve(
    path="pings",
    filters=("session_id", "viewer_id"),
    queued=True,
    access=Access(read="pings:read", write="pings:write"),
    window=Window("at", past=timedelta(days=7), ahead=timedelta(minutes=5)),
)
class Ping(
    Entity,
    name="ping.v1.Ping",
    key=Key(partition="{tenant_id}:{series}.{episode}:{at:%Y-%m-%d}", sort="{at}#{id}"),
    shards=Shards(start=4, max=256, placement="epochs"),
    indexes=[Index("GSI1", "by_time", partition="{tenant_id}:{at:%Y-%m-%d}", sort="{at}#{id}", shards=Shards(16))],
    expires="expires_at",
):
    """A minute of playback, reported by a player.

    The player sets the id of each ping, for example from its session and a number. So a ping that is sent again is the
    same ping.
    """

    tenant_id: str
    series: Name
    episode: Name
    at: Moment
    id: Name
    session_id: Name
    viewer_id: Name | None = None
    seconds: Annotated[int, Field(ge=0, le=3600)] = 60
    expires_at: Annotated[Moment | None, RETENTION, Field(validate_default=True)] = None
