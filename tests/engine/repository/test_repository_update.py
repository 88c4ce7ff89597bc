"""Partial updates on the real engine: fields, indexes, bounds."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dynashard import Create, Entity, Key, Registry, Update
from dynashard.errors import (
    InputError,
    InvalidKeyError,
    InvalidValueError,
    UndecodableItemError,
)
from dynashard.repository import Repository
from tests.engine.stored_things import NOON, Account, Note, Person, World, key, person

pytestmark = pytest.mark.engine

LONGEST = 10**38 - 1


class Weighed(Entity, name="test.v1.Weighed", key=Key(partition="{id}"), registry=Registry()):
    """An entity with a float field."""

    id: str
    weight: float


def test_index_keys_appear_change_and_disappear_with_their_fields(world: World) -> None:
    people = world.people
    people.create(person())
    assert world.entries("GSI1") == [("test.v1.Person:abc", "ada@example.com")]
    assert world.entries("GSI2") == []

    people.update(key(), set={"team": "eng"})
    assert world.entries("GSI2") == []
    people.update(key(), set={"rank": 7})
    assert world.entries("GSI2") == [("test.v1.Person:abc:eng:1", "007")]
    people.update(key(), add={"rank": 5}, set={"mail": "new@example.com"})
    assert world.entries("GSI2") == [("test.v1.Person:abc:eng:1", "012")]
    assert world.entries("GSI1") == [("test.v1.Person:abc", "new@example.com")]
    people.update(key(), set={"team": "ops"})
    assert world.entries("GSI2") == [("test.v1.Person:abc:ops:1", "012")]
    people.update(key(), remove=["team"])
    assert world.entries("GSI2") == []
    people.update(key(), set={"team": "ops", "rank": 1})
    people.update(key(), set={"rank": None})
    assert world.entries("GSI2") == []
    people.delete(key())
    assert world.entries("GSI1") == []


def test_index_by_a_stamp_follows_each_change(world: World) -> None:
    world.people.create(person())
    world.clock.at += 60

    world.people.update(key(), set={"visits": 1})

    assert world.entries("GSI3") == [("test.v1.Person:abc", "2026-11-20T12:01:00.000000Z")]
    assert world.people.get(key()).changed == NOON + timedelta(minutes=1)


def test_an_update_reads_first_only_if_an_index_key_needs_an_unnamed_field(world: World) -> None:
    world.people.create(person())
    for changes, reads in (
        ({"set": {"visits": 1}}, 0),
        ({"set": {"mail": "b@example.com"}}, 0),
        ({"set": {"team": "eng", "rank": 1}}, 0),
        ({"add": {"visits": 1}}, 0),
        ({"set": {"team": "ops"}}, 1),
        ({"add": {"rank": 1}}, 1),
    ):
        transport = world.faults()

        world.people.update(key(), **changes)

        assert (transport.sent("GetItem"), transport.sent("UpdateItem")) == (reads, 1), changes


def test_an_update_changes_only_the_named_fields(world: World) -> None:
    world.people.create(person(team="eng", rank=1, tags={"a"}))

    updated = world.people.update(
        key(), set={"mail": "new@example.com"}, remove=["team"], add={"visits": 3, "credit": 1.5, "tags": {"b"}}
    )

    assert (updated.mail, updated.team, updated.rank) == ("new@example.com", None, 1)
    assert (updated.visits, updated.credit, updated.tags) == (3, Decimal("1.5"), {"a", "b"})
    assert world.people.get(key()) == updated


def test_adding_to_an_absent_field_sets_it(world: World) -> None:
    world.people.create(person())

    updated = world.people.update(key(), add={"rank": 2, "tags": {"a"}, "credit": Decimal("0.1")})

    assert (updated.rank, updated.tags, updated.credit) == (2, {"a"}, Decimal("0.1"))


def test_none_is_distinguished_from_another_default(world: World) -> None:
    world.people.create(person(nickname=None))
    assert world.people.get(key()).nickname is None
    world.people.update(key(), set={"nickname": "Ada"})

    updated = world.people.update(key(), set={"nickname": None})

    assert updated.nickname is None
    assert world.only()["nickname"] == {"NULL": True}


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"set": {"id": "2"}}, InvalidKeyError, "id"),
        ({"remove": ["tenant"]}, InvalidKeyError, "tenant"),
        ({"set": {"nobody": 1}}, InvalidValueError, "nobody"),
        ({"set": {"Rev": "x"}}, InvalidValueError, "Rev"),
        ({"set": {"made": NOON}}, InvalidValueError, "made"),
        ({"set": {"changed": NOON}}, InvalidValueError, "changed"),
        ({"set": {"visits": "many"}}, InvalidValueError, "visits"),
        ({"set": {"mail": None}}, InvalidValueError, "mail"),
        ({"set": {"visits": 1}, "add": {"visits": 1}}, InvalidValueError, "visits"),
        ({"set": {"team": "a"}, "remove": ["team"]}, InvalidValueError, "team"),
        ({"remove": ["team", "team"]}, InvalidValueError, "team"),
        ({"remove": ["mail"]}, InvalidValueError, "mail"),
        ({"remove": ["visits"]}, InvalidValueError, "visits"),
        ({"remove": ["nickname"]}, InvalidValueError, "nickname"),
        ({"add": {"visits": True}}, InvalidValueError, "visits"),
        ({"add": {"visits": False}}, InvalidValueError, "visits"),
        ({"add": {"visits": "1"}}, InvalidValueError, "visits"),
        ({"add": {"visits": 1.5}}, InvalidValueError, "visits"),
        ({"add": {"visits": {1}}}, InvalidValueError, "visits"),
        ({"add": {"mail": 1}}, InvalidValueError, "mail"),
        ({"add": {"tags": 1}}, InvalidValueError, "tags"),
        ({"add": {"tags": {1}}}, InvalidValueError, "tags"),
        ({"add": {"tags": set()}}, InvalidValueError, "tags"),
        ({"add": {"until": 1}}, InvalidValueError, "until"),
        ({"add": {"credit": float("nan")}}, InvalidValueError, "credit"),
        ({"set": {"team": "a:b", "rank": 1}}, InvalidKeyError, "team"),
        ({"set": {"team": "a", "rank": 1000}}, InvalidKeyError, "rank"),
        ({"set": {"mail": "m" * 1025}}, InvalidKeyError, None),
    ],
)
def test_wrong_changes_are_refused_before_anything_is_sent(
    world: World, changes: dict[str, Any], error: type[InputError], field: str | None
) -> None:
    transport = world.faults()

    with pytest.raises(error) as refused:
        world.people.update(key(), **changes)

    assert refused.value.field == field
    assert transport.calls == []


def test_sum_beyond_the_bounds_of_its_field_is_refused(world: World) -> None:
    world.accounts.create(Account(id="1", balance=5))

    with pytest.raises(InvalidValueError, match="balance: Input should be greater than or equal to 0"):
        world.accounts.update({"id": "1"}, add={"balance": -6})

    assert world.accounts.update({"id": "1"}, add={"balance": -5}).balance == 0


def test_sum_beyond_the_bounds_of_a_field_is_refused_though_nothing_else_is_checked(world: World) -> None:
    world.notes.create(Note(tenant="a", id="1", stars=4))

    with pytest.raises(InvalidValueError, match="stars: Input should be less than or equal to 5"):
        world.notes.update({"tenant": "a", "id": "1"}, add={"stars": 2})

    assert world.notes.update({"tenant": "a", "id": "1"}, add={"stars": 1}).stars == 5


def test_an_update_is_checked_by_the_validators_of_the_entity(world: World) -> None:
    world.accounts.create(Account(id="1", low=1, high=3))

    with pytest.raises(InvalidValueError, match="low is above high"):
        world.accounts.update({"id": "1"}, set={"low": 4})

    assert world.accounts.update({"id": "1"}, set={"low": 4, "high": 4}).low == 4


def test_an_empty_set_that_is_the_default_is_not_stored(world: World) -> None:
    notes = world.notes
    created = notes.create(Note(tenant="abc", id="1"))
    assert (created.labels, "labels" in world.only()) == (set(), False)

    assert notes.update(key(), set={"labels": {"a", "b"}}).labels == {"a", "b"}
    emptied = notes.update(key(), set={"labels": set()})

    assert (emptied.labels, "labels" in world.only()) == (set(), False)
    assert notes.replace(Note(tenant="abc", id="1")).labels == set()


SUMS = pytest.mark.parametrize(
    ("add", "field"),
    [
        ({"credit": Decimal("0.1")}, "credit"),
        ({"visits": 2}, "visits"),
        ({"visits": 0, "credit": Decimal("0.1")}, "credit"),
        ({"visits": 9 * 10**125 - LONGEST}, "visits"),
    ],
)
"""Additions to the longest numbers whose sums DynamoDB cannot store."""


@pytest.mark.sampled(6)
@SUMS
@pytest.mark.parametrize("handling", ["plain", "guarded", "exactly-once"])
def test_a_sum_that_dynamodb_cannot_store_is_refused_by_its_field(
    world: World, add: dict[str, Any], field: str, handling: str
) -> None:
    before = world.people.create(person(credit=Decimal(LONGEST), visits=LONGEST))

    with pytest.raises(InvalidValueError) as refused:
        world.people.update(key(), add=add, handling=handling)

    assert (refused.value.field, refused.value.status) == (field, 422)
    assert world.people.get(key(), consistent=True) == before


@SUMS
def test_a_step_whose_sum_cannot_be_stored_is_refused_by_its_field(
    world: World, add: dict[str, Any], field: str
) -> None:
    world.people.create(person(credit=Decimal(LONGEST), visits=LONGEST))
    other = Create(person(id="another"))

    with pytest.raises(InvalidValueError) as refused:
        world.transact(other, Update(Person, key(), add=add))

    assert refused.value.field == field
    assert world.people.find(key("another"), consistent=True) is None


def test_the_sum_of_floats_is_the_one_that_dynamodb_forms(world: World) -> None:
    things = Repository(world.store, Weighed)
    things.create(Weighed(id="1", weight=1e20))

    with pytest.raises(InvalidValueError, match="significant digits") as refused:
        things.update({"id": "1"}, add={"weight": 1e-20})

    assert refused.value.field == "weight"
    assert things.update({"id": "1"}, add={"weight": 0.5}).weight == 1e20 + 0.5


THEIRS: list[dict[str, Any]] = [
    {"owner": {"S": "theirs"}},
    {"Type": {"S": "lock.v1.Lock"}, "Rev": {"S": "theirs"}, "tenant": {"S": "abc"}, "id": {"S": "1"}},
    {"Type": {"N": "7"}, "text": {"S": "theirs"}},
]


@pytest.mark.parametrize("theirs", THEIRS, ids=["without a type", "of another type", "of a type that is not a text"])
@pytest.mark.parametrize("add", [{"reads": 1}, {}], ids=["add", "set"])
def test_an_update_that_reads_nothing_leaves_a_row_of_another_program_as_it_is(
    world: World, theirs: dict[str, Any], add: dict[str, Any]
) -> None:
    notes = Repository(world.store, Note)
    notes.create(Note(tenant="abc", id="1"))
    [made] = world.raw()
    row = {"PK": made["PK"], "SK": made["SK"], **theirs}
    world.dynamodb.call("PutItem", TableName=world.table, Item=row)
    step = Update(Note, {"tenant": "abc", "id": "1"}, add={"reads": 1}, missing="create")

    with pytest.raises(UndecodableItemError, match=r"test\.v1\.Note at"):
        notes.update({"tenant": "abc", "id": "1"}, set={} if add else {"text": "ours"}, add=add)
    with pytest.raises(UndecodableItemError, match=r"test\.v1\.Note at"):
        world.transact(step)

    assert world.raw() == [row]


def test_an_update_of_an_item_of_which_the_rest_does_not_fit_says_that_it_is_stored(world: World) -> None:
    notes = Repository(world.store, Note)
    notes.create(Note(tenant="abc", id="1"))
    [made] = world.raw()
    world.dynamodb.call("PutItem", TableName=world.table, Item={**made, "reads": {"S": "many"}})

    with pytest.raises(UndecodableItemError, match="The update is stored"):
        notes.update({"tenant": "abc", "id": "1"}, set={"text": "new"})

    assert [(row["text"], row["reads"]) for row in world.raw()] == [({"S": "new"}, {"S": "many"})]
    assert notes.update({"tenant": "abc", "id": "1"}, set={"reads": 3}).reads == 3
