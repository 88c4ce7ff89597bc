"""Listings of randomly placed items, which do not move when counts grow and shrink."""

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Dynashard
from dynashard.entity import Entity, EntityDefinition, Index, IndexDefinition, Key, Registry, Shards
from dynashard.service import Collection
from dynashard.topology import Phase, View
from tests.depth import examples
from tests.engine.reads.listing_world import CURSOR_KEYS, ORDERS, World, tenant

pytestmark = [pytest.mark.engine, pytest.mark.one_face]


class Event(
    Entity,
    name="listing.v1.RandomEvent",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4, placement="random"),
    indexes=[Index("GSI1", "by_kind", "{tenant}:{kind}", "{id}", shards=Shards(2))],
    registry=Registry(),
):
    tenant: str
    id: str
    kind: str = "k"


@dataclass
class Growing:
    """A topology whose table count a test sets."""

    table: View

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        del entity, partition
        return self.table

    def index_view(self, entity: EntityDefinition[Any], index: IndexDefinition) -> View:
        del entity, index
        return View(2)

    def refresh(self, entity: EntityDefinition[Any], partition: str) -> None:
        """Views are not cached."""


def events(world: World, topology: Growing) -> Collection[Any]:
    db = Dynashard(world.transport, table=world.table, cursor_keys=CURSOR_KEYS, topology=topology)
    return db.collection(Event)


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 2**32), order=st.sampled_from(ORDERS), direction=st.sampled_from(["asc", "desc"]))
def test_lasting_items_are_listed_once_while_a_count_grows(world: World, seed: int, order: str, direction: str) -> None:
    random, of = Random(seed), tenant()
    topology = Growing(View(random.choice([1, 2, 4])))
    collection = events(world, topology)
    staying = [Event(tenant=of, id=f"{random.random():.9f}") for _ in range(60)]
    collection.batch_write(put=staying)
    added: list[Event] = []
    seen: list[str] = []
    cursor: str | None = None

    while True:
        page = collection.list(
            {"tenant": of}, order=order, direction=direction, limit=random.choice([2, 9]), cursor=cursor
        )
        seen += [item.id for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        view = topology.table
        if view.phase is Phase.PREPARE:
            topology.table = View(view.new_count)
        elif view.count < 32 and random.random() < 0.4:
            topology.table = View(view.count, Phase.PREPARE, view.count * 2)
        new = Event(tenant=of, id=f"{random.random():.9f}")
        collection.create(new)
        added.append(new)

    lasting = [event.id for event in staying]
    assert sorted(each for each in seen if each in lasting) == sorted(lasting)
    assert len(set(seen)) == len(seen)
    assert set(seen) <= {*lasting, *(event.id for event in added)}


@pytest.mark.parametrize("order", ORDERS)
def test_shards_added_during_a_listing_are_read_from_their_beginning(world: World, order: str) -> None:
    of, topology = tenant(), Growing(View(1))
    collection = events(world, topology)
    collection.batch_write(put=[Event(tenant=of, id=f"b{n}") for n in range(4)])

    first = collection.list({"tenant": of}, order=order, limit=2)
    topology.table = View(8)
    late = [Event(tenant=of, id=f"a{n}") for n in range(20)]
    collection.batch_write(put=late)
    pages = collection.pages({"tenant": of}, order=order, limit=5, cursor=first.cursor)
    ids = [item.id for page in [first, *pages] for item in page.items]

    assert [each for each in sorted(ids) if each >= "b"] == ["b0", "b1", "b2", "b3"]
    assert len(set(ids)) == len(ids)
    # Those in the first shard lie behind the position there; an ordered listing is past all of them.
    assert any(each < "b" for each in ids) is (order != "ordered")


@pytest.mark.parametrize("order", ORDERS)
def test_readers_also_read_the_shards_being_removed(world: World, order: str) -> None:
    of, topology = tenant(), Growing(View(8))
    collection = events(world, topology)
    collection.batch_write(put=[Event(tenant=of, id=f"{n:02d}") for n in range(40)])

    topology.table = View(8, Phase.PREPARE, 2)

    ids = [item.id for page in collection.pages({"tenant": of}, order=order, limit=7) for item in page.items]
    assert sorted(ids) == [f"{n:02d}" for n in range(40)]
    assert collection.count({"tenant": of}) == 40
    assert len(list(collection.scan({"tenant": of}))) == 40
    assert sum(load.items for load in collection.shards({"tenant": of})) == 40
    partition = {"tenant": of, "kind": "k"}
    assert len(collection.list(partition, index="by_kind", order=order, limit=50).items) == 40
