"""Stored items that this layer has not written: adopted ones, damaged ones and markers."""

import pytest

from dynashard.errors import (
    AlreadyExistsError,
    NotFoundError,
    RevisionMismatchError,
    TransactionConflictError,
    UndecodableItemError,
)
from tests.engine.stored_things import NOON, Note, World, key, person

pytestmark = pytest.mark.engine


def adopted(world: World, **attributes: dict[str, str]) -> None:
    world.adopt({"PK": {"S": "test.v1.Person:abc:1"}, "SK": {"S": "1"}, "tenant": {"S": "abc"}, "id": {"S": "1"},
                 "mail": {"S": "old@example.com"}, **attributes})  # fmt: skip


def test_adopted_item_is_read_updated_replaced_and_deleted(world: World) -> None:
    adopted(world, made={"S": "2020-01-01T00:00:00Z"}, legacy={"S": "kept"})

    read = world.people.get(key())
    assert (read.mail, read.revision, read.made.year) == ("old@example.com", "", 2020)
    updated = world.people.update(key(), set={"team": "eng"}, add={"rank": 3})
    assert (updated.team, updated.rank, updated.revision) == ("eng", 3, "rev-1")
    assert world.only()["legacy"] == {"S": "kept"}
    adopted(world, made={"S": "2020-01-01T00:00:00Z"})
    replaced = world.people.replace(person())
    assert (replaced.made.year, replaced.revision) == (2020, world.only()["Rev"]["S"])
    adopted(world)
    assert world.people.replace(person()).made == NOON
    adopted(world)
    with pytest.raises(AlreadyExistsError):
        world.people.create(person())
    with pytest.raises(RevisionMismatchError):
        world.people.replace(person(), if_match="rev-1")
    world.people.delete(key())
    assert world.raw() == []


def test_an_adopted_expiry_may_have_a_fraction_and_an_unreadable_one_is_named(world: World) -> None:
    adopted(world, ExpiresAt={"N": f"{NOON.timestamp() + 0.5}"}, made={"S": "2020-01-01T00:00:00Z"})
    assert world.people.get(key()).until == NOON
    world.clock.at += 1
    assert world.people.find(key()) is None
    adopted(world, ExpiresAt={"N": "1900000000000"})

    with pytest.raises(UndecodableItemError, match=r"ExpiresAt .* is not a time in epoch seconds"):
        world.people.get(key())


def test_item_that_no_longer_fits_its_declaration_is_named(world: World) -> None:
    adopted(world, visits={"S": "many"})

    with pytest.raises(UndecodableItemError, match=r"test\.v1\.Person at [^'{]*abc:1.* visits: .*valid integer"):
        world.people.get(key())
    assert world.people.replace(person()).visits == 0


def test_a_marker_is_not_found_and_not_overwritten(world: World) -> None:
    adopted(world, MovedTo={"N": "1"})
    stored = world.only()

    assert world.people.find(key()) is None
    assert not world.people.exists(key())
    assert world.people.batch_get([key()]) == [None]
    for attempt in (
        lambda: world.people.update(key(), set={"visits": 1}),
        lambda: world.people.delete(key()),
        lambda: world.people.replace(person()),
        lambda: world.people.create(person()),
    ):
        with pytest.raises((TransactionConflictError, RevisionMismatchError)):
            attempt()
    assert world.only() == stored


def test_a_marker_is_not_overwritten_by_a_write_without_a_read(world: World) -> None:
    world.adopt({"PK": {"S": "test.v1.Note:a"}, "SK": {"S": "1"}, "MovedTo": {"N": "8"}})
    stored = world.only()

    with pytest.raises(TransactionConflictError, match=r"an item of test\.v1\.Note was being moved .* Try again"):
        world.notes.replace(Note(tenant="a", id="1"))

    assert world.only() == stored


def test_adopted_expiry_holds_for_an_entity_that_declares_none(world: World) -> None:
    note = Note(tenant="abc", id="1", text="new")
    gone = {"PK": {"S": "test.v1.Note:abc"}, "SK": {"S": "1"}, "tenant": {"S": "abc"}, "id": {"S": "1"}}
    world.adopt({**gone, "ExpiresAt": {"N": str(int(NOON.timestamp()) - 1)}})

    assert world.notes.find(key()) is None
    with pytest.raises(NotFoundError):
        world.notes.update(key(), set={"text": "late"})
    with pytest.raises(NotFoundError):
        world.notes.delete(key())
    assert world.notes.create(note).text == "new"
    assert "ExpiresAt" not in world.only()
