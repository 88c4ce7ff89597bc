"""The shards of a collection, and checks of items before they are stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynashard import Entity, Key, Registry, Shards, created_at, definition, new_id
from dynashard.codec import item_size
from dynashard.errors import InvalidKeyError, InvalidQueryError, InvalidValueError, ItemTooLargeError
from dynashard.schema import PK
from dynashard.testing.faults import FaultyTransport
from dynashard.transport.interface import metered
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.reads.listing_world import NOW, BareNote, ModuloNote, Note, World
from tests.engine.reads.listing_world import tenant as new_tenant

pytestmark = pytest.mark.engine


@pytest.fixture
def notes_world(wire: Any, table: str) -> World:
    return World(wire, table)


def some(tenant: str, count: int, **fields: Any) -> list[Note]:
    return [Note(tenant=tenant, id=f"{number:04d}", **fields) for number in range(count)]


def stored(dynamodb: RawDynamoDB, table: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = dynamodb.call("Scan", TableName=table, ConsistentRead=True)["Items"]
    return items


@pytest.mark.parametrize("workers", [1, 4, 64])
def test_shards_count_items_and_bytes_of_every_shard_in_order(
    notes_world: World, dynamodb: RawDynamoDB, table: str, workers: int
) -> None:
    tenant = new_tenant()
    notes_world.collection().batch_write(put=[*some(tenant, 300, text="ü" * 50), *some(new_tenant(), 20)])

    shards = notes_world.collection().shards({"tenant": tenant}, workers=workers)

    raw = stored(dynamodb, table)
    keys = [f"listing.v1.Note:{tenant}:{number}" for number in range(16)]
    of_key = {key: [item for item in raw if item[PK]["S"] == key] for key in keys}
    assert [(s.partition_key, s.items, s.bytes) for s in shards] == [
        (key, len(of_key[key]), sum(map(item_size, of_key[key]))) for key in keys
    ]
    assert sum(shard.items for shard in shards) == 300


def test_shards_count_only_items_that_readers_see(notes_world: World) -> None:
    tenant = new_tenant()
    expired = [Note(tenant=tenant, id=f"x{number}", expires_at=NOW - timedelta(days=1)) for number in range(10)]
    notes_world.collection().batch_write(put=[*some(tenant, 5), *expired])

    shards = notes_world.collection().shards({"tenant": tenant})

    assert sum(shard.items for shard in shards) == notes_world.collection().count({"tenant": tenant}) == 5


def test_an_unsharded_partition_is_one_shard_without_a_number(notes_world: World) -> None:
    tenant = new_tenant()
    collection = notes_world.collection(BareNote)
    collection.create(BareNote(tenant=tenant, id="1"))

    [shard] = collection.shards({"tenant": tenant})

    assert (shard.partition_key, shard.items) == (f"listing.v1.BareNote:{tenant}", 1)


def test_shards_of_the_modulo_placement_count_from_one(notes_world: World) -> None:
    tenant = new_tenant()
    collection = notes_world.collection(ModuloNote)
    collection.batch_write(put=[ModuloNote(tenant=tenant, id=str(number)) for number in range(60)])

    shards = collection.shards({"tenant": tenant})

    assert [shard.partition_key.rpartition(":")[2] for shard in shards] == [str(number) for number in range(1, 7)]
    assert sum(shard.items for shard in shards) == 60


def test_shards_larger_than_one_answer_are_counted_completely(notes_world: World) -> None:
    tenant = new_tenant()
    notes_world.counts.count = 1
    collection = notes_world.collection()
    collection.batch_write(put=some(tenant, 1100))

    [shard] = collection.shards({"tenant": tenant})

    assert shard.items == 1100


def test_shards_refuse_an_invalid_partition(notes_world: World) -> None:
    collection = notes_world.collection()

    with pytest.raises(InvalidKeyError):
        collection.shards({"tenant": ""})
    with pytest.raises((InvalidKeyError, InvalidQueryError)):
        collection.shards({})
    with pytest.raises(InvalidQueryError, match="workers"):
        collection.shards({"tenant": "abc"}, workers=0)


@pytest.mark.parametrize(
    ("note", "error"),
    [
        (Note(tenant="abc", id="1", text="x" * 500_000), ItemTooLargeError),
        (Note(tenant="a:b", id="1"), InvalidKeyError),
        (Note(tenant="abc", id="x" * 1025), InvalidKeyError),
        (Note(tenant="abc", id="1", tags=set()), InvalidValueError),
        (Note(tenant="abc", id="1", expires_at=datetime(2030, 1, 1)), InvalidValueError),  # noqa: DTZ001 - the point
    ],
)
def test_check_refuses_what_a_write_would_and_sends_nothing(
    notes_world: World, note: Note, error: type[Exception]
) -> None:
    transport = FaultyTransport(notes_world.transport)
    collection = notes_world.collection(through=transport)

    with pytest.raises(error) as checked:
        collection.check(note)
    with pytest.raises(error) as created:
        collection.create(note)

    assert str(checked.value) == str(created.value)
    assert transport.calls == []


def test_check_accepts_storable_items_and_sends_nothing(notes_world: World) -> None:
    transport = FaultyTransport(notes_world.transport)
    note = Note(tenant="abc", id="1", tags={"a"})

    with metered() as meter:
        notes_world.collection(through=transport).check(note)

    assert transport.calls == []
    assert meter.consumed.write_units == 0
    assert note.revision is None


def test_generated_fields_are_those_that_new_id_fills_in() -> None:
    class Order(Entity, name="c.v1.Order", key=Key("{shop}", "{id}"), shards=Shards(4), registry=Registry()):
        shop: str
        id: str = new_id()
        receipt: str = new_id()
        note: str = "none"
        made: datetime = created_at()

    assert definition(Order).generated_fields == {"id", "receipt"}
    assert definition(Note).generated_fields == frozenset()
    assert Order(shop="s", made=datetime(2030, 1, 1, tzinfo=UTC)).id != Order(shop="s").id
