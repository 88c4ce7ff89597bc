"""Stored items that do not fit their entity are left out of every listing, and named; the others are listed once."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from dynashard import Collection, definition
from dynashard.errors import UndecodableItemError
from dynashard.routing import Router, home
from dynashard.topology import Phase
from dynashard.transport import metered
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.reads.listing_world import NOW, Counts, Note, World, alive, some_notes, tenant

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

SIZE = 300
IDS = ["a", "b", "c", "d", "e", "f"]
ODD: dict[str, dict[str, Any]] = {
    "a-type": {"size": {"S": "many"}},
    "b-type": {"kept": {"M": {}}},
    "b-tenant": {"tenant": {"S": "another"}},
    "ba-id": {"id": {"S": "another"}},
    "ü-bare": {},
}
"""Rows that do not fit, by their sort keys: of another type, of another key, and without what the layer stores."""


@pytest.fixture(scope="module")
def stored(world: World, dynamodb: RawDynamoDB) -> tuple[str, set[str]]:
    """A tenant with 300 rows, 5 of which do not fit, and the ids of the others. No test changes them."""
    world.counts, of = Counts(16), tenant()
    fitting = [note.model_copy(update={"expires_at": None}) for note in some_notes(Random(7), SIZE - 5, of=of)]
    world.collection().batch_write(put=[note.model_copy(update={"group": "g"}) for note in fitting])
    entity = definition(Note)
    for sort, odd in ODD.items():
        key = entity.key_of({"tenant": of, "id": sort})
        row: dict[str, Any] = {"PK": {"S": home(entity, key, 16)}, "SK": {"S": sort}}
        row |= {"GSI1PK": {"S": f"listing.v1.Note:{of}:g:0"}, "GSI1SK": {"S": "r1"}}
        if odd:
            row |= {"Type": {"S": entity.name}, "Rev": {"S": "r"}, "tenant": {"S": of}, "id": {"S": sort}}
            row |= {"group": {"S": "g"}, "rank": {"S": "r1"}, **odd}
        dynamodb.call("PutItem", TableName=world.table, Item=row)
    assert all(alive(note) for note in fitting)
    return of, {note.id for note in fitting}


@pytest.fixture
def notes(world: World, stored: tuple[str, set[str]]) -> tuple[Collection[Any], dict[str, str], set[str]]:
    """A collection, the partition of the tenant, and the ids of its rows that fit."""
    world.counts = Counts(16)
    of, fitting = stored
    return world.collection(), {"tenant": of}, fitting


def pages(items: Collection[Any], partition: Any, **asked: Any) -> tuple[list[str], list[str]]:
    """The ids that all pages of a listing have, and the sort keys of what they leave out."""
    found: list[str] = []
    left_out: list[str] = []
    for page in items.pages(partition, **asked):
        found += [item["id"] if isinstance(item, dict) else item.id for item in page.items]
        left_out += [each.sort_key for each in page.undecodable]
        assert len(page.items) + len(page.undecodable) <= asked.get("limit", 50)
    return found, left_out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [7, 1000])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"order": "shard"},
        {"order": "ordered"},
        {"order": "ordered", "direction": "desc"},
        {"fields": ["id", "size", "kept"]},
        {"fields": ["id", "size", "kept"], "order": "ordered"},
        {"consistent": True, "order": "ordered"},
    ],
    ids=str,
)
def test_every_listing_has_the_other_items_once_and_names_those_that_do_not_fit(
    notes: tuple[Collection[Any], dict[str, str], set[str]], asked: dict[str, Any], limit: int
) -> None:
    items, partition, fitting = notes

    found, left_out = pages(items, partition, limit=limit, **asked)

    assert sorted(found) == sorted(fitting)
    assert sorted(left_out) == sorted(ODD)
    if asked.get("order") == "ordered":
        assert found == sorted(fitting, reverse=asked.get("direction") == "desc")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["round_robin", "ordered"])
@pytest.mark.parametrize("asked", [{}, {"fields": ["id", "size", "kept"]}], ids=str)
def test_an_index_leaves_out_what_does_not_fit(
    notes: tuple[Collection[Any], dict[str, str], set[str]], order: str, asked: dict[str, Any]
) -> None:
    items, partition, fitting = notes

    found, left_out = pages(items, {**partition, "group": "g"}, index="by_rank", order=order, limit=20, **asked)

    assert sorted(found) == sorted(fitting)
    assert sorted(left_out) == sorted(ODD)


def test_several_partitions_leave_out_what_does_not_fit_in_any(
    notes: tuple[Collection[Any], dict[str, str], set[str]],
) -> None:
    items, partition, fitting = notes
    other = tenant()
    items.create(Note(tenant=other, id="one"))

    found, left_out = pages(items, [partition, {"tenant": other}], order="ordered", limit=40)

    assert found == sorted([*fitting, "one"])
    assert sorted(left_out) == sorted(ODD)


def test_scans_counts_and_batches_name_what_they_leave_out(
    notes: tuple[Collection[Any], dict[str, str], set[str]],
) -> None:
    items, partition, fitting = notes

    with metered() as meter:
        scan, counted = items.scan(partition), items.count(partition)
        ids = [item.id for item in scan]
        batch = items.batch_get([{**partition, "id": sort} for sort in (*ODD, min(fitting), "none")])

    assert sorted(ids) == sorted(fitting)
    assert counted == len(fitting) == 295
    assert [item and item.id for item in batch] == [*[None] * 5, min(fitting), None]
    for answer in (scan, counted, batch):
        assert sorted(each.sort_key for each in answer.undecodable) == sorted(ODD)
    assert meter.undecodable == 3 * len(ODD)


READS: dict[str, Callable[[Collection[Any], dict[str, str]], Any]] = {
    "page": lambda items, of: items.list(of, limit=1000, strict=True),
    "ordered page": lambda items, of: items.list(of, limit=1000, order="ordered", strict=True),
    "scan": lambda items, of: list(items.scan(of, strict=True)),
    "count": lambda items, of: items.count(of, strict=True),
    "batch": lambda items, of: items.batch_get([{**of, "id": "a-type"}], strict=True),
    "single item": lambda items, of: items.get({**of, "id": "b-tenant"}),
    "single item without a type": lambda items, of: items.find({**of, "id": "ü-bare"}),
}


@pytest.mark.parametrize("read", READS)
def test_a_strict_reader_and_one_of_a_single_item_get_the_error(
    notes: tuple[Collection[Any], dict[str, str], set[str]], read: str
) -> None:
    items, partition, _ = notes

    with pytest.raises(UndecodableItemError, match=r"listing\.v1\.Note at "):
        READS[read](items, partition)


def moving() -> tuple[str, str, str, str]:
    """Return a tenant, one of the sort keys that has another home among 8 shards than among 4, and both homes."""
    entity = definition(Note)
    while True:  # of one tenant in 64, no sort key moves
        of = tenant()
        for sort in IDS:
            old, new = (home(entity, entity.key_of({"tenant": of, "id": sort}), count) for count in (4, 8))
            if old != new:
                return of, sort, old, new


def moved_without(world: World, dynamodb: RawDynamoDB, lacking: str) -> tuple[str, str, str]:
    """Store items, one of which has moved and lost these keys; return its tenant, its sort key and its new home."""
    of, sort, old, new = moving()
    world.counts = Counts(8)
    world.collection().batch_write(put=[Note(tenant=of, id=each, group="g", rank=f"r{each}") for each in IDS])
    keys = {"GSI1PK": {"S": f"listing.v1.Note:{of}:g:0"}, "GSI1SK": {"S": f"r{sort}"}}
    marker = {"PK": {"S": old}, "SK": {"S": sort}, "MovedTo": {"N": "8"}, "Type": {"S": definition(Note).name}, **keys}
    dynamodb.call("PutItem", TableName=world.table, Item=marker)
    dynamodb.call(
        "UpdateItem",
        TableName=world.table,
        Key={"PK": {"S": new}, "SK": {"S": sort}},
        UpdateExpression=f"REMOVE {lacking}",
    )
    world.counts = Counts(4, resize=(Phase.SETTLE, 8), marks=True)
    return of, sort, new


def test_a_moved_item_that_has_left_its_index_is_neither_listed_nor_named(world: World, dynamodb: RawDynamoDB) -> None:
    of, sort, _ = moved_without(world, dynamodb, "GSI1PK, GSI1SK")

    found, left_out = pages(world.collection(), {"tenant": of, "group": "g"}, index="by_rank", limit=2)

    assert (sorted(found), left_out) == ([each for each in IDS if each != sort], [])


@pytest.mark.parametrize("lacking", ["GSI1PK", "GSI1SK"])
def test_a_moved_item_without_a_key_of_its_index_is_named_and_does_not_end_the_listing(
    world: World, dynamodb: RawDynamoDB, lacking: str
) -> None:
    of, sort, new = moved_without(world, dynamodb, lacking)
    items, partition = world.collection(), {"tenant": of, "group": "g"}

    for asked in ({}, {"fields": ["id"]}, {"order": "ordered"}, {"order": "ordered", "fields": ["id"]}):
        found, left_out = pages(items, partition, index="by_rank", limit=2, **asked)
        assert (sorted(found), left_out) == ([each for each in IDS if each != sort], [sort])
    scan = items.scan(partition, index="by_rank")
    assert sorted(item.id for item in scan) == [each for each in IDS if each != sort]
    [named] = scan.undecodable
    assert named.problem.endswith(f"at {new} / {sort} does not fit: it has no {lacking}, so it is not in the index")
    # Its key is as it was.
    assert items.get({"tenant": of, "id": sort}).rank == f"r{sort}"


def test_an_entry_of_an_index_under_the_key_of_another_tenant_is_not_shown_to_that_tenant(
    world: World, dynamodb: RawDynamoDB
) -> None:
    world.counts, of, other = Counts(4), tenant(), tenant()
    items = world.collection()
    items.create(Note(tenant=of, id="a", group="g", rank="r"))
    [row] = dynamodb.call(
        "Query",
        TableName=world.table,
        IndexName="GSI1",
        KeyConditionExpression="GSI1PK = :pk",
        ExpressionAttributeValues={":pk": {"S": entry_of(world, of)}},
    )["Items"]
    row["GSI1PK"] = {"S": f"listing.v1.Note:{other}:g:0"}
    dynamodb.call("PutItem", TableName=world.table, Item=row)

    for asked in ({}, {"fields": ["id"]}, {"order": "ordered"}):
        page = items.list({"tenant": other, "group": "g"}, index="by_rank", **asked)
        assert page.items == []
        assert page.undecodable == []
    assert items.get({"tenant": of, "id": "a"}).tenant == of


def entry_of(world: World, of: str) -> str:
    """The stored partition key of the only entry of a tenant's group."""
    index = definition(Note).indexes["by_rank"]
    stored = world.collection().get({"tenant": of, "id": "a"})
    key = definition(Note).key_of(stored)
    attributes = Router(world.counts).index_attributes(definition(Note), index, key, stored.__dict__)
    return attributes["GSI1PK"]["S"]


@pytest.mark.parametrize("marker", [{"S": "16"}, {"N": "-1"}, {"N": "1.5"}, {"N": "5000"}, {"BOOL": True}], ids=str)
def test_a_damaged_marker_is_named_and_its_key_has_a_clear_error(
    world: World, dynamodb: RawDynamoDB, marker: dict[str, Any]
) -> None:
    world.counts, of = Counts(4), tenant()
    items, entity = world.collection(), definition(Note)
    items.create(Note(tenant=of, id="live"))
    key = entity.key_of({"tenant": of, "id": "a"})
    row = {"PK": {"S": home(entity, key, 4)}, "SK": {"S": "a"}, "MovedTo": marker}
    dynamodb.call("PutItem", TableName=world.table, Item=row)
    gone = {"tenant": of, "id": "a"}

    for act in (items.get, items.delete, lambda key: items.create(Note(**key)), lambda key: items.put(Note(**key))):
        with pytest.raises(UndecodableItemError, match="MovedTo is"):
            act(gone)
    outcomes = items.try_batch_write(put=[Note(**gone), Note(tenant=of, id="live")])
    assert [type(outcome) for outcome in outcomes] == [UndecodableItemError, type(None)]
    assert items.batch_get([gone, {**gone, "id": "live"}])[1] is not None
    assert pages(items, {"tenant": of}) == (["live"], ["a"])
    assert pages(items, {"tenant": of}, order="ordered") == (["live"], ["a"])
    assert items.count({"tenant": of}) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"ExpiresAt": {"S": "soon"}},
        {"ExpiresAt": {"N": str(NOW.timestamp() + 1e30)}},
        {"Rev": {"N": "1"}},
        {"Rev": {"S": ""}},
        {"Type": {"N": "1"}},
    ],
    ids=str,
)
def test_malformed_attributes_of_the_layer_are_named(world: World, dynamodb: RawDynamoDB, odd: dict[str, Any]) -> None:
    world.counts, of = Counts(4), tenant()
    items, entity = world.collection(), definition(Note)
    items.create(Note(tenant=of, id="live"))
    key = entity.key_of({"tenant": of, "id": "a"})
    row: dict[str, Any] = {"PK": {"S": home(entity, key, 4)}, "SK": {"S": "a"}, "Type": {"S": entity.name}}
    row |= {"Rev": {"S": "r"}, "tenant": {"S": of}, "id": {"S": "a"}, **odd}
    dynamodb.call("PutItem", TableName=world.table, Item=row)

    with pytest.raises(UndecodableItemError):
        items.get({"tenant": of, "id": "a"})
    for order in ("round_robin", "ordered"):
        assert pages(items, {"tenant": of}, order=order) == (["live"], ["a"])
