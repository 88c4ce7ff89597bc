"""What the schedules are about: notes in every layout whose count can change."""

from datetime import datetime

from dynashard import Entity, Index, Key, Registry, Shards, created_at

TENANT = "t"
GROUP = "g"

_INDEXES = [
    Index("GSI1", "by_rank", "{tenant}:{group}", "{rank}", shards=Shards(2)),
    Index("GSI2", "by_rank_key", "{tenant}:{group}", "{rank}", shards=Shards(2), shard_by="index_key"),
    Index("GSI3", "by_rank_bare", "{tenant}:{group}", "{rank}"),
]


class Note(
    Entity,
    name="n.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """Calculated placement."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None


class GuardedNote(
    Entity, name="g.v1.Note", key=Key("{tenant}", "{id}"), shards=Shards(2), handling="guarded", registry=Registry()
):
    """As `Note`, with reads before writes, and without indexes."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None


class OnceNote(
    Entity,
    name="o.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    handling="exactly-once",
    registry=Registry(),
):
    """As `GuardedNote`, with writes in transactions with tokens."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None


class StampedNote(
    Entity,
    name="s.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """As `Note`; a put of an item that was not read must read first, to keep the stamp."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None
    created_at: datetime = created_at()


class AdoptedNote(
    Entity,
    name="a.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4, adopt="unsharded"),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """As `Note`, found unsharded."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None


class Event(
    Entity,
    name="e.v1.Event",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2, placement="random"),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """Random placement: keys are created once."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None
