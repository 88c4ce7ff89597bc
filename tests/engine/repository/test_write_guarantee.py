"""The three handlings of writes whose answers are lost: plain, guarded and exactly once."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.entity import Entity, Key, Registry
from dynashard.errors import (
    AlreadyExistsError,
    DeclarationError,
    InvalidQueryError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
)
from dynashard.testing.faults import Fault, lost_after, lost_answer, lost_request, meanwhile_repeated, repeated
from dynashard.transport import metered
from tests.engine.stored_things import Note, World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEY = {"tenant": "a", "id": "1"}


def note(text: str) -> Note:
    return Note(**KEY, text=text)


def text(world: World) -> str | None:
    world.faults()
    found = world.notes.find(KEY, consistent=True)
    return None if found is None else found.text


WRITES: dict[str, tuple[bool, Callable[[World, str], Any], str | None]] = {
    "create": (False, lambda world, level: world.notes.create(note("mine"), handling=level), "mine"),
    "put": (True, lambda world, level: world.notes.put(note("mine"), handling=level), "mine"),
    "put new": (False, lambda world, level: world.notes.put(note("mine"), handling=level), "mine"),
    "update": (True, lambda world, level: world.notes.update(KEY, set={"text": "mine"}, handling=level), "mine"),
    "delete": (True, lambda world, level: world.notes.delete(KEY, handling=level), None),
}
COSTS = {
    "plain": {"create": (0, 1), "put": (0, 1), "put new": (0, 1), "update": (0, 1), "delete": (0, 1)},
    "guarded": {"create": (1, 1), "put": (1, 1), "put new": (1, 1), "update": (1, 1), "delete": (1, 1)},
    "exactly-once": {"create": (0, 2), "put": (1, 2), "put new": (1, 2), "update": (1, 2), "delete": (0, 2)},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("level", COSTS)
def test_each_handling_costs_what_is_documented_and_does_the_same(world: World, level: str, write: str) -> None:
    exists, do, expected = WRITES[write]
    if exists:
        world.notes.create(note("old"))

    with metered() as meter:
        do(world, level)

    assert (meter.consumed.read_units, meter.consumed.write_units) == COSTS[level][write]
    assert text(world) == expected


FAULTS: dict[str, Callable[[str], Fault]] = {
    "answer lost": repeated,
    "request lost for good": lost_request,
    "answer lost for good": lost_answer,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("fault", FAULTS)
def test_exactly_once_is_never_unknown(world: World, fault: str, write: str) -> None:
    exists, do, expected = WRITES[write]
    if exists:
        world.notes.create(note("old"))
    transport = world.faults(FAULTS[fault]("TransactWriteItems"))

    do(world, "exactly-once")

    assert transport.waiting == []
    assert text(world) == expected


def test_exactly_once_refuses_a_lost_write_that_came_too_late(world: World) -> None:
    plain = world.notes
    world.faults(lost_after("TransactWriteItems", lambda: plain.create(note("other"))))

    with pytest.raises(AlreadyExistsError):
        world.notes.create(note("mine"), handling="exactly-once")

    assert text(world) == "other"


def test_exactly_once_does_not_undo_a_later_write(world: World) -> None:
    plain = world.notes
    plain.create(note("old"))
    world.faults(meanwhile_repeated("TransactWriteItems", lambda: plain.update(KEY, set={"text": "other"})))

    world.notes.put(note("mine"), handling="exactly-once")

    assert text(world) == "other"


def test_an_update_exactly_once_returns_the_stored_item_even_if_later_reads_fail(world: World) -> None:
    world.notes.create(note("old"))
    transport = world.faults(
        lost_request("GetItem", nth=2), lost_request("GetItem", nth=3), repeated("TransactWriteItems")
    )

    updated = world.notes.update(KEY, set={"text": "mine"}, handling="exactly-once")

    assert updated.text == "mine"
    assert transport.sent("GetItem") == 1
    world.faults()
    assert world.notes.get(KEY, consistent=True) == updated


def test_an_update_exactly_once_is_done_though_another_deletes_the_item_at_once(world: World) -> None:
    plain = world.notes
    plain.create(note("old"))
    world.faults(meanwhile_repeated("TransactWriteItems", lambda: plain.delete(KEY)))

    assert world.notes.update(KEY, set={"text": "mine"}, handling="exactly-once").text == "mine"

    assert text(world) is None


def test_exactly_once_raises_what_a_plain_write_raises(world: World) -> None:
    with pytest.raises(NotFoundError):
        world.notes.delete(KEY, handling="exactly-once")
    with pytest.raises(NotFoundError):
        world.notes.update(KEY, set={"text": "x"}, handling="exactly-once")
    world.notes.create(note("old"))
    with pytest.raises(RevisionMismatchError):
        world.notes.put(note("mine"), if_match="another", handling="exactly-once")
    with pytest.raises(RevisionMismatchError):
        world.notes.delete(KEY, if_match="another", handling="exactly-once")


def test_a_guarded_delete_whose_answer_was_lost_is_done(world: World) -> None:
    world.notes.create(note("old"))
    transport = world.faults(repeated("DeleteItem"))

    world.notes.delete(KEY, handling="guarded")

    assert transport.waiting == []
    assert text(world) is None


def test_a_guarded_delete_is_done_if_another_item_was_created_since(world: World) -> None:
    plain = world.notes
    plain.create(note("old"))
    world.faults(meanwhile_repeated("DeleteItem", lambda: plain.create(note("new"))))

    world.notes.delete(KEY, handling="guarded")

    assert text(world) == "new"


def test_a_guarded_delete_continues_if_the_item_was_changed_instead(world: World) -> None:
    plain = world.notes
    plain.create(note("old"))
    transport = world.faults(lost_after("DeleteItem", lambda: plain.update(KEY, set={"text": "changed"})))

    world.notes.delete(KEY, handling="guarded")

    assert transport.sent("DeleteItem") == 2
    assert text(world) is None


def test_a_guarded_create_of_an_existing_item_is_refused_without_a_request(world: World) -> None:
    world.notes.create(note("old"))
    transport = world.faults(lost_request("PutItem"))

    with pytest.raises(AlreadyExistsError):
        world.notes.create(note("mine"), handling="guarded")

    assert transport.sent("PutItem") == 0


@pytest.mark.parametrize("exists", [True, False], ids=["another revision", "nothing"])
def test_a_guarded_delete_at_another_revision_is_refused_without_a_request(world: World, *, exists: bool) -> None:
    if exists:
        world.notes.create(note("old"))
    transport = world.faults(lost_request("DeleteItem"))

    with pytest.raises(RevisionMismatchError):
        world.notes.delete(KEY, if_match="another", handling="guarded")

    assert transport.sent("DeleteItem") == 0


def test_a_guarded_delete_of_a_missing_item_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError):
        world.notes.delete(KEY, handling="guarded")


def test_a_guarded_put_overwrites_an_earlier_write_of_another(world: World) -> None:
    plain = world.notes
    plain.create(note("old"))
    world.faults(lost_after("UpdateItem", lambda: plain.update(KEY, set={"text": "other"})))

    world.notes.put(note("mine"), handling="guarded")

    assert text(world) == "mine"


def test_a_guarded_put_does_not_undo_a_later_write(world: World) -> None:
    plain = world.notes
    plain.create(note("old"))
    world.faults(meanwhile_repeated("UpdateItem", lambda: plain.update(KEY, set={"text": "other"})))

    world.notes.put(note("mine"), handling="guarded")

    assert text(world) == "other"


def test_an_entity_may_declare_its_handling(world: World) -> None:
    class Careful(
        Entity, name="test.v1.Careful", key=Key(partition="{id}"), handling="exactly-once", registry=Registry()
    ):
        id: str

    careful = world.of(Careful)
    transport = world.faults(lost_answer("TransactWriteItems"))
    careful = world.of(Careful)

    careful.create(Careful(id="1"))
    world.faults(lost_request("PutItem"))
    with pytest.raises(OutcomeUnknownError):
        world.of(Careful).create(Careful(id="2"), handling="plain")

    assert transport.sent("TransactWriteItems") == 2


def test_unknown_handlings_are_refused(world: World) -> None:
    with pytest.raises(InvalidQueryError, match="handling is 'twice'; it must be one of plain, guarded, exactly-once"):
        world.notes.put(note("x"), handling="twice")
    with pytest.raises(DeclarationError, match="one of plain, guarded, exactly-once"):

        class Wrong(Entity, name="test.v1.Wrong", key=Key(partition="{id}"), handling="safe", registry=Registry()):
            id: str
