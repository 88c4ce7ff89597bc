"""A read of some fields asks for these, for those of the keys, and for what says whether the item may be shown."""

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dynashard.errors import NotFoundError
from dynashard.reads import answers
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE, VERSION, index_sk
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.reads.listing_world import NOW, BareNote, Counts, Note, World, tenant
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

JUDGED = {PK, SK, TYPE, VERSION, EXPIRES_AT, MOVED_TO}
"""Whose item it is, and whether this release may show it. Most items have no more of it than key and type.

A Query names the partition key of what it reads, so it does not ask for it.
"""
Read = Callable[[Any, dict[str, Any]], list[str]]


def asked_for(recording: RecordingTransport) -> set[str]:
    """Return the attributes that the last request names."""
    names: dict[str, str] = recording.requests[-1]["ExpressionAttributeNames"]
    return set(names.values())


def a_note(world: World, of: str) -> Note:
    note = Note(tenant=of, id="1", group="g", rank="r1", text="long")
    world.collection().create(note)
    return note


@pytest.mark.parametrize("order", ["round_robin", "ordered", "shard"])
def test_a_listing_of_two_fields_reads_those_and_the_keys(world: World, order: str) -> None:
    of, recording = tenant(), RecordingTransport(world.transport)
    a_note(world, of)

    pages = world.collection(through=recording).pages({"tenant": of}, order=order, fields=["size", "kept"])

    assert [each for page in pages for each in page] == [{"size": 0, "kept": True}]
    assert asked_for(recording) == {"size", "kept", "tenant", "id"} | JUDGED - {PK}


def test_an_index_listing_reads_the_fields_of_its_own_key_too(world: World) -> None:
    of, recording = tenant(), RecordingTransport(world.transport)
    a_note(world, of)

    page = world.collection(through=recording).list(
        {"tenant": of, "group": "g"}, index="by_rank_bare", limit=100, fields=["size"]
    )

    assert page.items == [{"size": 0}]
    own = {index_sk("GSI3"), "group", "rank", REV}
    assert asked_for(recording) == {"size", "tenant", "id"} | own | JUDGED


@pytest.mark.parametrize("index", [None, "by_rank_bare"])
@pytest.mark.parametrize("order", ["round_robin", "ordered"])
def test_what_is_left_out_has_its_stored_key(
    world: World, dynamodb: RawDynamoDB, index: str | None, order: str
) -> None:
    of, world.counts = tenant(), Counts(1)
    a_note(world, of)
    world.collection().create(Note(tenant=of, id="2", group="g", rank="r2"))
    give(dynamodb, world, (f"listing.v1.Note:{of}:0", "2"), "kept", 3)
    partition = {"tenant": of, "group": "g"} if index else {"tenant": of}

    page = world.collection().list(partition, index=index, order=order, fields=["kept"])

    assert page.items == [{"kept": True}]
    assert [(each.partition_key, each.sort_key) for each in page.undecodable] == [(f"listing.v1.Note:{of}:0", "2")]


def not_parsed(_: bytes) -> Any:
    raise AssertionError("the answer was parsed as a whole")


@pytest.mark.parametrize("index", [None, "by_rank_bare"])
@pytest.mark.parametrize("fields", [None, ["size"]])
def test_a_listing_reads_the_bytes_of_an_answer_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, index: str | None, fields: list[str] | None
) -> None:
    of, world.counts = tenant(), Counts(1)
    a_note(world, of)
    partition = {"tenant": of, "group": "g"} if index else {"tenant": of}
    monkeypatch.setattr(answers, "loads", not_parsed)

    assert len(world.collection().list(partition, index=index, fields=fields).items) == 1


@pytest.mark.one_face
@pytest.mark.parametrize("fields", [None, ["size"]])
def test_a_listing_leaves_nothing_to_the_garbage_collector(world: World, fields: list[str] | None) -> None:
    of = tenant()
    a_note(world, of)
    notes = world.collection()
    notes.list({"tenant": of}, fields=fields)

    def left() -> int:
        # Frozen objects are not looked at: with those of a whole suite, each search takes half a second. They stay
        # frozen, as modules and tests are.
        gc.freeze()
        gc.disable()
        try:
            notes.list({"tenant": of}, fields=fields)
            return gc.collect()
        finally:
            gc.enable()

    # What other threads leave meanwhile is found as well.
    assert min(left() for _ in range(5)) == 0


def test_a_part_of_an_item_is_read_with_its_revision(world: World) -> None:
    of, recording = tenant(), RecordingTransport(world.transport)
    note = a_note(world, of)

    part = world.collection(through=recording).part("1", tenant=of, fields=["size"])

    assert part.values == {"size": 0}
    assert part.revision == world.collection().get(note).revision
    assert asked_for(recording) == {"size", "tenant", "id", REV} | JUDGED


def listed(notes: Any, of: dict[str, Any]) -> list[str]:
    return [each["id"] for page in notes.pages(of, fields=["id"]) for each in page]


def scanned(notes: Any, of: dict[str, Any]) -> list[str]:
    return [each["id"] for each in notes.scan(of, fields=["id"])]


def single(notes: Any, of: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for each in ("1", "2"):
        with suppress(NotFoundError):
            found.append(notes.part({**of, "id": each}, fields=["id"]).values["id"])
    return found


def give(dynamodb: RawDynamoDB, world: World, key: tuple[str, str], attribute: str, number: int) -> None:
    """Give a stored item one more attribute, as another release or a resize does."""
    dynamodb.call(
        "UpdateItem",
        TableName=world.table,
        Key={PK: {"S": key[0]}, SK: {"S": key[1]}},
        UpdateExpression=f"SET {attribute} = :number",
        ConditionExpression=f"attribute_exists({PK})",
        ExpressionAttributeValues={":number": {"N": str(number)}},
    )


@pytest.mark.parametrize("read", [listed, scanned, single])
def test_an_expiry_that_the_entity_does_not_declare_hides_the_item(
    world: World, dynamodb: RawDynamoDB, read: Read
) -> None:
    of = {"tenant": tenant()}
    notes = world.collection(BareNote)
    for name in ("1", "2"):
        notes.create(BareNote(**of, id=name))

    give(dynamodb, world, (f"listing.v1.BareNote:{of['tenant']}", "1"), EXPIRES_AT, int(NOW.timestamp()) - 1)

    assert read(notes, of) == ["2"]


@pytest.mark.parametrize("read", [listed, scanned])
def test_a_marker_that_a_resize_has_left_is_no_second_item(world: World, dynamodb: RawDynamoDB, read: Read) -> None:
    of, world.counts = {"tenant": tenant()}, Counts(1)
    notes = world.collection()
    for name in ("1", "2"):
        notes.create(Note(**of, id=name))

    # A marker is the whole item that has moved, and this attribute.
    give(dynamodb, world, (f"listing.v1.Note:{of['tenant']}:0", "1"), MOVED_TO, 2)

    assert read(notes, of) == ["2"]
