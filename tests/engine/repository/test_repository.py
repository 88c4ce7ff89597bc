"""Single items on the real engine: results and stored items."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from dynashard import Entity, Key, Registry
from dynashard.errors import (
    AlreadyExistsError,
    InputError,
    InvalidKeyError,
    ItemTooLargeError,
    NotFoundError,
    RevisionMismatchError,
)
from dynashard.transport import metered
from tests.engine.stored_things import NOON, Note, World, key, person

pytestmark = pytest.mark.engine

Attempts = list[tuple[type[InputError], Callable[[], object]]]


class Sole(Entity, name="test.v1.Sole", key=Key("settings"), registry=Registry()):
    size: int = 0


def test_an_entity_without_fields_in_its_key_has_one_item(world: World) -> None:
    soles = world.of(Sole)

    soles.create(Sole(size=1))
    with pytest.raises(AlreadyExistsError):
        soles.create(Sole(size=2))
    soles.put(Sole(size=3))

    assert soles.get({}).size == 3
    assert [each.size for each in soles.list({})] == [3]


def test_created_item_is_stored_in_the_published_format(world: World) -> None:
    created = world.people.create(person(team="eng", rank=7, until=NOON + timedelta(days=1, microseconds=5)))

    item = world.only()
    assert item == {
        "PK": {"S": "test.v1.Person:abc:1"},
        "SK": {"S": "1"},
        "Type": {"S": "test.v1.Person"},
        "Rev": {"S": "rev-1"},
        "ExpiresAt": {"N": str(int(NOON.timestamp()) + 86400)},
        "GSI1PK": {"S": "test.v1.Person:abc"},
        "GSI1SK": {"S": "ada@example.com"},
        "GSI2PK": {"S": "test.v1.Person:abc:eng:1"},
        "GSI2SK": {"S": "007"},
        "GSI3PK": {"S": "test.v1.Person:abc"},
        "GSI3SK": {"S": "2026-11-20T12:00:00.000000Z"},
        "tenant": {"S": "abc"},
        "id": {"S": "1"},
        "mail": {"S": "ada@example.com"},
        "team": {"S": "eng"},
        "rank": {"N": "7"},
        "visits": {"N": "0"},
        "credit": {"N": "0"},
        "nickname": {"S": "none yet"},
        "made": item["made"],
        "changed": item["made"],
    }
    assert created.revision == "rev-1"
    assert created == world.people.get(key())


def test_a_given_item_is_not_modified(world: World) -> None:
    given = person()
    before = given.model_copy(deep=True)

    world.people.create(given)

    assert given == before
    assert given.revision is None


def test_creating_over_a_live_item_is_refused_and_changes_nothing(world: World) -> None:
    world.people.create(person())
    stored = world.only()

    with pytest.raises(AlreadyExistsError, match=r"test.v1.Person tenant='abc', id='1' exists already"):
        world.people.create(person(mail="other@example.com"))

    assert world.only() == stored


def test_a_missing_item_is_not_found(world: World) -> None:
    people = world.people

    assert people.find(key()) is None
    assert people.exists(key()) is False
    assert people.batch_get([key()]) == [None]
    for attempt in (
        lambda: people.get(key()),
        lambda: people.part(key(), fields=["visits"]),
        lambda: people.update(key(), set={"visits": 1}),
        lambda: people.update(key(), set={"team": "eng"}),
        lambda: people.delete(key()),
    ):
        with pytest.raises(NotFoundError, match=r"test.v1.Person tenant='abc', id='1' does not exist"):
            attempt()
    assert world.raw() == []


def test_item_is_read_by_its_key_or_by_itself(world: World) -> None:
    created = world.people.create(person())

    assert world.people.get(created) == world.people.get(key(), consistent=True) == created
    assert world.people.find(created) == created
    assert world.people.exists(created) is True
    assert world.people.get(key()).revision == created.revision


def test_replacing_removes_fields_that_the_new_item_lacks(world: World) -> None:
    world.people.create(person(team="eng", rank=1, tags={"a"}, until=NOON + timedelta(days=1)))

    replaced = world.people.replace(person(mail="new@example.com"))

    assert {"team", "rank", "tags", "ExpiresAt", "GSI2PK", "GSI2SK"} & world.only().keys() == set()
    assert world.people.get(key()) == replaced
    assert replaced.revision == world.only()["Rev"]["S"] == "rev-2"


def test_a_put_reports_whether_it_created(world: World) -> None:
    first, second = world.people.put(person()), world.people.put(person())
    third, fourth = world.notes.put(Note(tenant="a", id="1")), world.notes.put(Note(tenant="a", id="1"))

    assert [written.created for written in (first, second, third, fourth)] == [True, False, True, False]


def test_stamps_follow_the_clock_and_creation_is_kept(world: World) -> None:
    created = world.people.create(person(made=NOON - timedelta(days=9), changed=NOON - timedelta(days=9)))
    world.clock.at += 60
    replaced_blind = world.people.replace(person())
    world.clock.at += 60
    replaced_read = world.people.replace(world.people.get(key()))
    world.clock.at += 60
    updated = world.people.update(key(), set={"visits": 1})

    assert (created.made, created.changed) == (NOON, NOON)
    assert (replaced_blind.made, replaced_blind.changed) == (NOON, NOON + timedelta(minutes=1))
    assert (replaced_read.made, replaced_read.changed) == (NOON, NOON + timedelta(minutes=2))
    assert (updated.made, updated.changed) == (NOON, NOON + timedelta(minutes=3))


def test_every_write_makes_a_new_revision(world: World) -> None:
    people = world.people

    revisions = [
        people.create(person()).revision,
        people.replace(person()).revision,
        people.update(key(), set={"visits": 2}).revision,
        people.update(key()).revision,
    ]

    assert len(set(revisions)) == 4
    assert people.get(key()).revision == revisions[-1]


def test_if_match_lets_only_the_named_revision_be_changed(world: World) -> None:
    people = world.people
    old = people.create(person()).revision
    current = people.update(key(), set={"visits": 1}).revision
    stored = world.only()

    for attempt in (
        lambda: people.replace(person(), if_match=old),
        lambda: people.replace(people.get(key()), if_match=old),
        lambda: people.put(person(), if_match=old),
        lambda: people.update(key(), set={"visits": 5}, if_match=old),
        lambda: people.update(key(), set={"team": "eng"}, if_match=old),
        lambda: people.delete(key(), if_match=old),
    ):
        with pytest.raises(RevisionMismatchError, match=r"is at revision rev-2; read it again") as refused:
            attempt()
        assert refused.value.current == current
    assert world.only() == stored

    after_replace = people.replace(person(), if_match=current).revision
    after_read = people.replace(people.get(key()), if_match=after_replace).revision
    after_update = people.update(key(), set={"team": "eng"}, if_match=after_read).revision
    people.delete(key(), if_match=after_update)
    assert world.raw() == []


def test_if_match_on_a_missing_item_is_a_mismatch(world: World) -> None:
    people, notes = world.people, world.notes

    for attempt in (
        lambda: people.replace(person(), if_match="rev-1"),
        lambda: people.delete(key(), if_match="rev-1"),
        lambda: people.update(key(), set={"visits": 5}, if_match="rev-1"),
        lambda: notes.replace(Note(tenant="a", id="1"), if_match="rev-1"),
    ):
        with pytest.raises(RevisionMismatchError, match="does not exist; read it again") as refused:
            attempt()
        assert refused.value.current is None
    assert world.raw() == []


def test_an_expired_item_disappears_at_its_second(world: World) -> None:
    world.people.create(person(until=NOON + timedelta(seconds=60)))
    world.clock.at += 59.9
    assert world.people.exists(key())
    world.clock.at += 0.1

    people = world.people
    assert people.find(key()) is None
    assert people.find(key(), consistent=True) is None
    assert people.exists(key()) is False
    assert people.batch_get([key()]) == [None]
    for attempt in (
        lambda: people.get(key()),
        lambda: people.part(key(), fields=["visits"]),
        lambda: people.update(key(), set={"visits": 1}),
        lambda: people.update(key(), set={"team": "eng"}),
        lambda: people.update(key(), set={"until": None}),
        lambda: people.delete(key()),
    ):
        with pytest.raises(NotFoundError):
            attempt()
    for attempt in (
        lambda: people.replace(person(), if_match="rev-1"),
        lambda: people.update(key(), set={"visits": 1}, if_match="rev-1"),
        lambda: people.delete(key(), if_match="rev-1"),
    ):
        with pytest.raises(RevisionMismatchError) as refused:
            attempt()
        assert refused.value.current is None
    assert world.only()["Rev"] == {"S": "rev-1"}


@pytest.mark.parametrize("again", ["create", "put"])
def test_an_expired_item_is_overwritten_like_a_missing_one(world: World, again: str) -> None:
    world.people.create(person(visits=5, until=NOON + timedelta(seconds=60)))
    world.clock.at += 60

    if again == "create":
        made = world.people.create(person()).made
    else:
        written = world.people.put(person())
        assert written.created
        made = written.item.made

    assert made == NOON + timedelta(seconds=60)
    assert world.people.get(key()).visits == 0


def test_an_expiry_can_be_extended_removed_and_set_again(world: World) -> None:
    world.people.create(person(until=NOON + timedelta(seconds=60)))

    later = world.people.update(key(), set={"until": NOON + timedelta(seconds=120, milliseconds=700)})
    assert later.until == NOON + timedelta(seconds=120)
    world.clock.at += 100
    assert world.people.update(key(), remove=["until"]).until is None
    assert "ExpiresAt" not in world.only()
    world.clock.at += 100
    assert world.people.exists(key())
    world.people.update(key(), set={"until": world.clock.time()})
    assert not world.people.exists(key())


def test_key_and_size_are_checked_before_anything_is_sent(world: World) -> None:
    transport = world.faults()
    people = world.people
    attempts: Attempts = [
        (InvalidKeyError, lambda: people.create(person(tenant=""))),
        (InvalidKeyError, lambda: people.create(person(id="x" * 1025))),
        (InvalidKeyError, lambda: people.create(person(tenant="a:b"))),
        (InvalidKeyError, lambda: people.create(person(mail="m" * 1025))),
        (InvalidKeyError, lambda: people.get({"tenant": "abc"})),
        (InvalidKeyError, lambda: people.delete({"tenant": "abc", "id": "1", "mail": "x"})),
        (InvalidKeyError, lambda: people.batch_get([key(), key("")])),
        (InvalidKeyError, lambda: people.batch_write(put=[person(), person(tenant="")])),
        (ItemTooLargeError, lambda: world.notes.create(Note(tenant="a", id="1", text="x" * 409_600))),
        (ItemTooLargeError, lambda: world.notes.batch_write(put=[Note(tenant="a", id="1", text="x" * 409_600)])),
    ]

    for error, attempt in attempts:
        with pytest.raises(error):
            attempt()

    assert transport.calls == []


def test_deleted_item_is_gone_and_can_be_created_again(world: World) -> None:
    world.people.create(person())

    world.people.delete(key())

    assert world.raw() == []
    world.people.create(person())


def test_other_items_are_not_changed(world: World) -> None:
    for identity in ("1", "2", "10"):
        world.people.create(person(id=identity))
    world.people.create(person(tenant="abd"))

    world.people.update(key(), set={"visits": 9})
    world.people.delete(key("10"))

    assert [item and item.visits for item in world.people.batch_get([key("1"), key("2"), key("10")])] == [9, 0, None]
    assert world.people.get({"tenant": "abd", "id": "1"}).visits == 0


def test_operations_cost_what_is_documented(world: World) -> None:
    notes = world.notes
    note = Note(tenant="a", id="1", text="x" * 900)
    spent = []
    for operation in (
        lambda: notes.create(note),
        lambda: notes.get(note),
        lambda: notes.get(note, consistent=True),
        lambda: notes.exists(note),
        lambda: notes.replace(note),
        lambda: notes.update({"tenant": "a", "id": "1"}, add={"reads": 1}),
        lambda: notes.delete(note),
    ):
        with metered() as meter:
            operation()
        spent.append((meter.consumed.read_units, meter.consumed.write_units, meter.consumed.requests))

    assert spent == [(0, 1, 1), (0.5, 0, 1), (1, 0, 1), (0.5, 0, 1), (0, 1, 1), (0, 1, 1), (0, 1, 1)]


def test_an_entity_with_one_item_per_partition_is_stored(world: World) -> None:
    class Profile(Entity, name="test.v1.Profile", key=Key(partition="{tenant}"), registry=Registry()):
        tenant: str
        motto: str = ""

    profiles = world.of(Profile)
    profiles.create(Profile(tenant="abc"))

    assert profiles.update({"tenant": "abc"}, set={"motto": "on"}).motto == "on"
    assert (world.only()["PK"], world.only()["SK"]) == ({"S": "test.v1.Profile:abc"}, {"S": "test.v1.Profile"})


def test_a_put_over_an_expired_item_reports_a_creation(world: World) -> None:
    read = world.people.create(person(until=NOON + timedelta(seconds=60)))
    world.clock.at += 60

    written = world.people.put(read)

    assert written.created
