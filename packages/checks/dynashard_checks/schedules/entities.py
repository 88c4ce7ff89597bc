"""The entities of the schedules: notes in every layout whose shard count can change."""

from datetime import datetime

from dynashard import Entity, Index, Key, Registry, Shards, created_at, new_id

TENANT = "t"
GROUP = "g"

_INDEXES = [
    Index("GSI1", "by_rank", "{tenant}:{group}", "{rank}", shards=Shards(2)),
    Index("GSI2", "by_rank_key", "{tenant}:{group}", "{rank}", shards=Shards(2), shard_by="index_key"),
    Index("GSI3", "by_rank_bare", "{tenant}:{group}", "{rank}"),
]


class NoteFields(Entity):
    """The fields that all notes have."""

    tenant: str
    id: str
    value: int
    hits: int = 0
    kept: bool = True
    group: str | None = None
    rank: str | None = None
    text: str = ""
    expires_at: datetime | None = None


class Note(
    NoteFields,
    name="n.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """Calculated placement."""


class GuardedNote(
    NoteFields, name="g.v1.Note", key=Key("{tenant}", "{id}"), shards=Shards(2), handling="guarded", registry=Registry()
):
    """As `Note`, with guarded writes and without indexes."""


class OnceNote(
    NoteFields,
    name="o.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    handling="exactly-once",
    registry=Registry(),
):
    """As `GuardedNote`, with exactly-once writes: transactions with tokens."""


class UniqueNote(
    NoteFields,
    name="q.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    expires="expires_at",
    unique=("tag",),
    registry=Registry(),
):
    """As `Note`, with a unique field and without indexes."""

    tag: str | None = None


class StampedNote(
    NoteFields,
    name="s.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """As `Note`, with a creation timestamp: a put of an item that was not read before reads it first."""

    created_at: datetime = created_at()


class AdoptedNote(
    NoteFields,
    name="a.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4, adopt="unsharded"),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """As `Note`, adopted: its first items are stored unsharded."""


class Event(
    NoteFields,
    name="e.v1.Event",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2, placement="random"),
    indexes=_INDEXES,
    expires="expires_at",
    registry=Registry(),
):
    """As `Note`, with random placement: a key is created at most once."""


class TimedNote(
    NoteFields,
    name="t.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=1, max=16, placement="epochs"),
    indexes=_INDEXES,
    registry=Registry(),
):
    """As `Note`, placed by epochs: keys begin with their time."""

    id: str = new_id()


class TimedGuardedNote(
    NoteFields,
    name="u.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=2, max=16, placement="epochs"),
    handling="guarded",
    registry=Registry(),
):
    """As `TimedNote`, with guarded writes and without indexes."""

    id: str = new_id()


class TimedOnceNote(
    NoteFields,
    name="v.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=1, max=16, placement="epochs"),
    handling="exactly-once",
    registry=Registry(),
):
    """As `TimedGuardedNote`, with exactly-once writes."""

    id: str = new_id()


class TimedUniqueNote(
    NoteFields,
    name="x.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(start=1, max=16, placement="epochs"),
    unique=("tag",),
    registry=Registry(),
):
    """As `TimedNote`, with a unique field and without indexes."""

    id: str = new_id()
    tag: str | None = None


class TimedAdoptedNote(
    NoteFields,
    name="w.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4, max=16, adopt="unsharded", placement="epochs"),
    indexes=_INDEXES,
    registry=Registry(),
):
    """As `TimedNote`, adopted: the items of its first epoch are stored unsharded."""

    id: str = new_id()
