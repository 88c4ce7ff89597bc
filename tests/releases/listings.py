"""Listings whose cursors are kept from each release: the items that they list, and the cursors after two pages.

This module runs under the code of any release, so it imports the sharding layer alone. `python listings.py ENDPOINT
TABLE` stores the items in an empty table, and prints the cursors that the release issues, and what is before and after.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from dynashard import Dynashard, Entity, EntityDefinition, Filter, Index, Key, Registry, Shards
from dynashard.entity import IndexDefinition
from dynashard.placement import UNSHARDED
from dynashard.runtime import Runtime
from dynashard.topology import Phase, View
from dynashard.transport import Transport, connect

NOW: Final = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
KEY: Final = "the-cursor-key-of-every-release"
TENANTS: Final = ("one", "two")
GROUP: Final = {"tenant": "one", "group": "g"}
REGISTRY: Final = Registry()


class Note(
    Entity,
    name="release.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    indexes=[
        Index("GSI1", "by_rank", "{tenant}:{group}", "{rank}:{topic}", shards=Shards(4)),
        Index("GSI2", "by_rank_bare", "{tenant}:{group}", "{rank}"),
    ],
    registry=REGISTRY,
):
    tenant: str
    id: str
    group: str = "g"
    rank: str
    topic: str
    kept: bool


class Bare(Entity, name="release.v1.Bare", key=Key("{tenant}", "{id}"), registry=REGISTRY):
    tenant: str
    id: str


class Counted(
    Entity, name="release.v1.Counted", key=Key("{tenant}", "{id}"), shards=Shards(6, "modulo"), registry=REGISTRY
):
    tenant: str
    id: str


class Event(
    Entity, name="release.v1.Event", key=Key("{tenant}", "{id}"), shards=Shards(4, "random"), registry=REGISTRY
):
    tenant: str
    id: str


NOTES: Final = [
    # Of 5 ranks and 9 topics, so that many index entries have equal sort keys.
    Note(tenant=tenant, id=f"{n * 7919 % 1009:04d}-{n}", rank=f"r{n % 5}", topic=f"t{n % 9}", kept=n % 3 > 0)
    for tenant in TENANTS
    for n in range(90)
]
OTHERS: Final = [
    model(tenant="one", id=f"{n * 7919 % 1009:04d}") for model in (Bare, Counted, Event) for n in range(40)
]


@dataclass(frozen=True)
class Case:
    """A listing of an entity: its arguments, whether items are filtered by `kept`, and whether counts are changing."""

    name: str
    model: type[Entity] = Note
    partition: Any = field(default_factory=lambda: {"tenant": "one"})
    kept: bool = False
    changing: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        filters = [Filter("kept", "=", value=True)] if self.kept else []
        return {"partition": self.partition, "limit": 7, "filters": filters, **self.asked}


BOTH: Final = [{"tenant": tenant} for tenant in TENANTS]
BY_RANK: Final = {"index": "by_rank", "order": "ordered"}
CASES: Final = [
    Case("round robin"),
    Case("round robin, descending", asked={"direction": "desc"}),
    Case("shard order", asked={"order": "shard"}),
    Case("ordered, with fences", asked={"order": "ordered"}),
    Case("ordered, descending, with fences", asked={"order": "ordered", "direction": "desc"}),
    Case("ordered, of a range", asked={"order": "ordered", "start": "02", "end": "08"}),
    Case("round robin, of a prefix", asked={"prefix": "0"}),
    Case("ordered, filtered", kept=True, asked={"order": "ordered"}),
    Case("round robin, filtered", kept=True),
    Case("several partitions, round robin", partition=BOTH),
    Case("several partitions, ordered", partition=BOTH, asked={"order": "ordered"}),
    Case("index, round robin", partition=GROUP, asked={"index": "by_rank"}),
    Case("index, shard order", partition=GROUP, asked={"index": "by_rank", "order": "shard"}),
    Case("index, ordered", partition=GROUP, asked=BY_RANK),
    Case("index, ordered, descending", partition=GROUP, asked={**BY_RANK, "direction": "desc"}),
    Case("index of one shard, ordered", partition=GROUP, asked={"index": "by_rank_bare", "order": "ordered"}),
    Case("index, distinct", partition=GROUP, asked={**BY_RANK, "distinct": "topic"}),
    Case("round robin, during a change", changing=True),
    Case("index, round robin, during a change", partition=GROUP, changing=True, asked={"index": "by_rank"}),
    Case("index, ordered, during a change", partition=GROUP, changing=True, asked=BY_RANK),
    Case("unsharded, round robin", model=Bare),
    Case("unsharded, ordered", model=Bare, asked={"order": "ordered"}),
    Case("modulo placement, round robin", model=Counted),
    Case("modulo placement, ordered", model=Counted, asked={"order": "ordered"}),
    Case("random placement, round robin", model=Event),
    Case("random placement, ordered", model=Event, asked={"order": "ordered"}),
]


@dataclass(frozen=True)
class Counts:
    """Declared shard counts; if they are `changing`, each power of two begins to double, and no item has moved."""

    changing: bool = False

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del partition
        return self._of(entity)

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        del entity
        return self._of(index)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Views are not cached."""

    def _of(self, declared: EntityDefinition[Any] | IndexDefinition) -> View:
        version = "1893456000.000001"
        if declared.shards is None:
            return View(UNSHARDED, version=version)
        count = declared.shards.initial
        if self.changing:
            return View(count, Phase.PREPARE, 2 * count, markers=True, version=version)
        return View(count, version=version)


def opened(transport: Transport, table: str, *, changing: bool = False) -> Dynashard:
    """Open a table as every release opens it, at a time that stands still."""
    topology = Counts(changing)
    return Dynashard(transport, table=table, topology=topology, cursor_keys=[KEY], runtime=Runtime(clock=lambda: NOW))


def store(db: Dynashard) -> None:
    """Store the items that the cases list."""
    for model in (Note, Bare, Counted):
        items: Sequence[Any] = [each for each in (*NOTES, *OTHERS) if isinstance(each, model)]
        db.collection(model).batch_write(put=items)
    for number, event in enumerate(each for each in OTHERS if isinstance(each, Event)):
        # In the same shard each time, where the layer would draw one.
        plain = {"PK": f"release.v1.Event:one:{number % 4}", "SK": event.id, "Type": "release.v1.Event", "Rev": "r"}
        item = {name: {"S": value} for name, value in {**plain, "tenant": "one", "id": event.id}.items()}
        db.store.transport.call("PutItem", {"TableName": db.store.table, "Item": item})


def named(item: Any) -> str:
    """Return what the kept cursors call an item."""
    return f"{item.tenant}/{item.id}"


def issued(transport: Transport, table: str) -> list[dict[str, Any]]:
    """Return the cursor of each case after two pages, and which items come before and after it."""
    found = []
    for case in CASES:
        db, cursor = opened(transport, table, changing=case.changing), None
        seen: list[str] = []
        for _ in range(2):
            page = db.collection(case.model).list(**case.arguments, cursor=cursor)
            seen += map(named, page.items)
            cursor = page.cursor
        found.append({"name": case.name, "cursor": cursor, "seen": seen, "rest": rest(db, case, cursor)})
    return found


def rest(db: Dynashard, case: Case, cursor: str | None) -> list[str]:
    """Return the items of a case from a cursor on."""
    pages = db.collection(case.model).pages(**case.arguments, cursor=cursor)
    return [named(item) for page in pages for item in page.items]


def main(endpoint: str, table: str) -> None:
    transport = connect(endpoint_url=endpoint, region="us-east-1", access_key="local", secret_key="local")  # noqa: S106
    store(opened(transport, table))
    sys.stdout.write(json.dumps(issued(transport, table)))


if __name__ == "__main__":
    main(*sys.argv[1:])
