"""Entities of every layout, and collections of them on the engine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import uuid4

from dynashard import Dynashard, Entity, EntityDefinition, Index, Key, Registry, Shards, definition
from dynashard.entity import IndexDefinition
from dynashard.placement import UNSHARDED
from dynashard.routing import home
from dynashard.runtime import Runtime
from dynashard.service import Collection
from dynashard.topology import Phase, View
from dynashard.transport import Transport
from tests.direct_transport import direct_transport

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ORDERS = ["round_robin", "ordered", "shard"]
CURSOR_KEYS = ["the-newest-cursor-key", "an-older-cursor-key"]


class Note(
    Entity,
    name="listing.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    indexes=[
        Index("GSI1", "by_rank", "{tenant}:{group}", "{rank}", shards=Shards(4)),
        Index("GSI2", "by_rank_key", "{tenant}:{group}", "{rank}", shards=Shards(4), shard_by="index_key"),
        Index("GSI3", "by_rank_bare", "{tenant}:{group}", "{rank}"),
    ],
    expires="expires_at",
    registry=Registry(),
):
    tenant: str
    id: str
    group: str | None = None
    rank: str | None = None
    kept: bool = True
    size: int = 0
    tags: set[str] | None = None
    text: str = ""
    expires_at: datetime | None = None


class BareNote(Entity, name="listing.v1.BareNote", key=Key("{tenant}", "{id}"), registry=Registry()):
    tenant: str
    id: str
    kept: bool = True


class ModuloNote(
    Entity, name="listing.v1.ModuloNote", key=Key("{tenant}", "{id}"), shards=Shards(6, "modulo"), registry=Registry()
):
    tenant: str
    id: str
    kept: bool = True


INDEXES = sorted(definition(Note).indexes)


@dataclass
class Counts:
    """A topology whose counts a test sets. An entity that is declared unsharded stays so.

    `resize` has the phase and the target of the table's count, `index_resize` those of the indexes' count. `former` are
    the counts by which older entries stand.
    """

    count: int = 16
    index_count: int = 4
    modulo_count: int = 6
    resize: tuple[Phase, int | None] = (Phase.STABLE, None)
    index_resize: tuple[Phase, int | None] = (Phase.STABLE, None)
    marks: bool = False
    resizes: int = 0
    former: tuple[int, ...] = ()

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del partition
        if entity.shards is None:
            return View(UNSHARDED)
        if not entity.shards.rule.powers_of_two:
            return View(self.modulo_count)
        return View(self.count, *self.resize, markers=self.marks, version=self._version)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        del entity
        if not index.shards:
            return View(UNSHARDED, markers=self.marks, version=self._version)
        return View(self.index_count, *self.index_resize, markers=self.marks, version=self._version, former=self.former)

    @property
    def _version(self) -> str:
        return str(self.resizes) if self.resizes else ""

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Views are not cached."""


@dataclass
class World:
    """A table, and collections on it.

    `collection` takes the transport to use, and follows the counts of this world.
    """

    transport: Transport
    table: str
    counts: Counts = field(default_factory=Counts)

    def collection(
        self, model: type[Entity] = Note, *others: type[Entity], through: Transport | None = None, **more: Any
    ) -> Collection[Any]:
        db = Dynashard(
            through or self.transport,
            table=self.table,
            cursor_keys=more.pop("cursor_keys", CURSOR_KEYS),
            topology=self.counts,
            runtime=Runtime(more.pop("clock", NOW.timestamp)),
            **more,
        )
        return db.collection(model, *others)

    def resize(self, notes: Sequence[Any], count: int) -> None:
        """Change the table's count, and move the items to their new homes."""
        collection, before = self.collection(), self.counts.count
        moved = [n for n in notes if _home(n, before) != _home(n, count)]
        collection.batch_write(delete=[{"tenant": n.tenant, "id": n.id} for n in moved])
        self.counts.count = count
        collection.batch_write(put=moved)


@contextmanager
def world_on(engine_url: str, table: str) -> Iterator[World]:
    """Open a world on an empty table of the engine."""
    with closing(direct_transport(engine_url)) as transport:
        yield World(transport, table)


def tenant() -> str:
    return uuid4().hex


def some_notes(random: Random, size: int, *, of: str, ranks: int = 3) -> list[Note]:
    """Return notes of one tenant: a fifth has expired, and most have index entries, some with equal sort keys."""
    return [
        Note(
            tenant=of,
            id=random.choice(["a", "b", "ba", "ü"]) + f"{random.random():.9f}"[2:],
            group="g" if random.random() < 0.9 else None,
            rank=f"r{random.randrange(ranks)}",
            kept=random.random() < 0.5,
            expires_at=random.choice([None, None, NOW + timedelta(days=1), NOW - timedelta(days=1), None]),
        )
        for _ in range(size)
    ]


def alive(note: Note) -> bool:
    return note.expires_at is None or note.expires_at > NOW


def listed(
    collection: Collection[Any],
    partition: dict[str, Any] | Sequence[dict[str, Any]],
    limit: Callable[[], int],
    **asked: Any,
) -> list[Any]:
    """Read a listing page by page with its cursors, and return all items."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(2000):
        most = limit()
        page = collection.list(partition, cursor=cursor, limit=most, **asked)
        assert len(page.items) <= most
        items += page.items
        cursor = page.cursor
        if cursor is None:
            return items
    raise AssertionError("the listing does not end")


def fields_of(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the fields of entities by id, without revisions, which differ between written and read items."""
    return sorted((item.model_dump() for item in items), key=lambda item: str(item["id"]))


def _home(note: Any, count: int) -> str:
    entity = definition(Note)
    return home(entity, entity.key_of(note), count)
