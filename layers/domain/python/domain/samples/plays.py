"""Plays: pings summed up by episode and by series."""

from datetime import datetime
from typing import Final

from domain.samples.pings import Ping
from dynashard import Entity, Key, Shards
from dynashard_patterns import Level, RollUps
from dynashard_serving.declare import Access, ServedRollUps


class EpisodePlays(
    Entity,
    name="plays.v1.Episode",
    key=Key(partition="{tenant_id}:{series}.{episode}", sort="{level}#{start}#{slot:02d}"),
    shards=Shards(start=1, max=64),
    expires="expires_at",
):
    """How much of an episode was watched in a minute, an hour or a day."""

    tenant_id: str
    series: str
    episode: str
    level: Level
    start: datetime
    slot: int = 0
    pings: int = 0
    seconds: int = 0
    expires_at: datetime | None = None


class SeriesPlays(
    Entity,
    name="plays.v1.Series",
    key=Key(partition="{tenant_id}:{level}", sort="{start}#{series}#{slot:02d}"),
    shards=Shards(start=4, max=64),
    expires="expires_at",
):
    """How much of a series was watched in a month. All series of a tenant share a logical partition."""

    tenant_id: str
    series: str
    level: Level
    start: datetime
    slot: int = 0
    pings: int = 0
    seconds: int = 0
    expires_at: datetime | None = None


PLAYS: Final = RollUps(
    name="plays",
    of=Ping,
    at="at",
    into={EpisodePlays: ("minute", "hour", "day"), SeriesPlays: ("month",)},
    add=lambda ping: {"pings": 1, "seconds": ping.seconds},
    by_time="by_time",
)
PLAYS_SERVED: Final = ServedRollUps(
    PLAYS,
    path="roll-ups",
    name="Plays",
    summary="List roll-ups of pings",
    text="Lists how much was watched of an episode or a series, span by span.",
    parameters={
        "level": "The length of the spans. Months are of whole series.",
        "series": "The series; for months, all series if it is missing.",
        "episode": "The episode; not for months.",
    },
    tag="pings",
    access=Access(read="pings:read"),
)
