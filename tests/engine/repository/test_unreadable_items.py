"""An item that readers could not read is refused before it is stored, however it is written."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from dynashard import Create, Entity, Index, Key, Put, Registry, Retention, Update
from dynashard.errors import InvalidKeyError, InvalidValueError
from dynashard.repository import Repository
from dynashard.transport import metered
from tests.engine.stored_things import Note, Person, World, person

pytestmark = pytest.mark.engine

WRITES: dict[str, Callable[[World, Person], object]] = {
    "create": lambda world, item: world.people.create(item),
    "create exactly once": lambda world, item: world.people.create(item, handling="exactly-once"),
    "put": lambda world, item: world.people.put(item),
    "put over": lambda world, item: world.people.put(item, over=world.people.get(item)),
    "replace": lambda world, item: world.people.replace(item),
    "batch": lambda world, item: world.people.batch_write([item]),
    "transaction that creates": lambda world, item: world.transact(Create(item)),
    "transaction that puts": lambda world, item: world.transact(Put(item)),
    "check of what is queued": lambda world, item: Repository(world.store, Person).check(item),
}


class Measured(Entity, name="test.v1.Measured", key=Key(partition="{id}"), registry=Registry()):
    """An entity with a default that its field refuses, which pydantic does not check."""

    id: str
    width: int = "wide"  # type: ignore[assignment]


class Timed(Entity, name="test.v1.Timed", key=Key(partition="{id}"), registry=Registry()):
    """An entity with a length of time."""

    id: str
    lasts: timedelta = timedelta()


class Span(Entity, name="test.v1.Span", key=Key(partition="{id}"), registry=Registry()):
    """An entity of which two fields must fit each other."""

    id: str
    note: str = ""
    start: int = 0
    stop: int = 9
    later: str = ""

    @field_validator("stop")
    @classmethod
    def _after_start(cls, stop: int, info: ValidationInfo) -> int:
        if stop < info.data.get("start", 0):
            raise ValueError("stop lies before start")
        return stop


class Coded(
    Entity,
    name="test.v1.Coded",
    key=Key("{tenant}", "{made}#{code}"),
    indexes=[
        Index("GSI1", "by_email", partition="{tenant}", sort="{email}"),
        Index("GSI2", "by_team", partition="{team}", sort="{code}"),
    ],
    registry=Registry(),
):
    """An entity whose validators change defaults, which pydantic does not validate."""

    tenant: str = "abc"
    made: date = date(2126, 1, 1)
    code: Annotated[str, StringConstraints(to_upper=True)] = "a1"
    email: Annotated[str, StringConstraints(to_lower=True)] = "Ada@X.org"
    team: Annotated[str | None, AfterValidator(lambda team: None if team == "none" else team)] = "none"
    note: str = ""


class Weighed(Entity, name="test.v1.Weighed", key=Key(partition="{id}"), registry=Registry()):
    """An entity that looks at its fields when it is made."""

    id: str
    weight: int = 1

    def model_post_init(self, _context: Any, /) -> None:
        if not self.weight:
            raise ValueError("it weighs nothing")


class Visit(Entity, name="test.v1.Visit", key=Key(partition="{id}"), expires="expires_at", registry=Registry()):
    """An entity whose expiry is counted from another field."""

    id: str
    at: datetime
    note: str = ""
    expires_at: Annotated[datetime | None, Retention("at", months=3), Field(validate_default=True)] = None


class Called(Entity, name="test.v1.Called", key=Key(partition="{id}"), registry=Registry()):
    """An entity whose key is in lower case."""

    id: Annotated[str, StringConstraints(to_lower=True)]
    calls: int = 0
    tags: set[str] | None = None


OTHER_KEYS: dict[str, Callable[[World, Called], object]] = {
    "create": lambda world, item: world.of(Called).create(item),
    "put": lambda world, item: world.of(Called).put(item),
    "batch": lambda world, item: world.of(Called).batch_write([item]),
    "transaction that creates": lambda world, item: world.transact(Create(item)),
    "transaction that adds": lambda world, _: world.transact(
        Update(Called, {"id": "ADA"}, add={"calls": 1}, missing="create")
    ),
    "transaction that adds to what it reads": lambda world, _: world.transact(
        Update(Called, {"id": "ADA"}, add={"tags": {"a"}}, missing="create", returns=True)
    ),
    "check of what is queued": lambda world, item: Repository(world.store, Called).check(item),
}


@pytest.mark.parametrize("write", OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_an_item_that_would_be_read_under_another_key_is_not_stored(world: World, write: Callable[..., object]) -> None:
    with pytest.raises(InvalidKeyError):
        write(world, Called(id="bob").model_copy(update={"id": "ADA"}))

    assert world.raw() == []


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_copy_with_a_value_of_another_type_is_not_stored(world: World, write: Callable[..., object]) -> None:
    item = world.people.create(person())
    before = world.raw()

    with pytest.raises(InvalidValueError, match=r"credit: .+; the item could not be read") as refused:
        write(world, item.model_copy(update={"credit": "much"}))

    assert refused.value.field == "credit"
    assert world.raw() == before


def test_a_default_that_its_field_refuses_is_not_stored(world: World) -> None:
    with pytest.raises(InvalidValueError, match="width: Input should be a valid integer"):
        world.of(Measured).create(Measured(id="1"))

    assert world.raw() == []


def test_a_number_that_is_too_long_a_time_is_not_stored(world: World) -> None:
    with pytest.raises(InvalidValueError, match="the item could not be read again, so it is not stored"):
        world.of(Timed).create(Timed(id="1").model_copy(update={"lasts": 10**20}))

    assert world.raw() == []


def test_the_other_items_of_a_batch_are_stored(world: World) -> None:
    good, bad = Note(tenant="abc", id="1"), Note(tenant="abc", id="2").model_copy(update={"reads": "many"})

    outcomes: list[Any] = world.notes.try_batch_write([good, bad])

    assert outcomes[0] is None
    assert isinstance(outcomes[1], InvalidValueError)
    assert [note.id for note in world.notes.items(tenant="abc")] == ["1"]


@pytest.mark.parametrize("updates", [{"set": {"stop": 1}}, {"set": {"start": 10}}, {"add": {"start": 8}}], ids=str)
def test_an_update_that_a_validator_of_another_field_refuses_is_not_stored(
    world: World, updates: dict[str, Any]
) -> None:
    spans = world.of(Span)
    spans.create(id="1", start=2)
    before = world.raw()

    for write in (
        lambda: spans.update("1", **updates),
        lambda: spans.update("1", **updates, handling="exactly-once"),
        lambda: world.transact(Update(Span, {"id": "1"}, **updates)),
    ):
        with pytest.raises(InvalidValueError, match="stop lies before start"):
            write()

    assert world.raw() == before
    assert spans.update("1", start=9).start == 9


def test_an_update_that_the_whole_item_refuses_is_not_stored(world: World) -> None:
    world.of(Weighed).create(id="1")
    world.of(Visit).create(id="1", at=datetime(2126, 1, 1, tzinfo=UTC))
    before = world.raw()

    with pytest.raises(InvalidValueError, match="it weighs nothing"):
        world.of(Weighed).update("1", weight=0)
    with pytest.raises(InvalidValueError, match="would never expire"):
        world.of(Visit).update("1", at=datetime(9999, 12, 31, tzinfo=UTC))

    assert world.raw() == before


def test_an_update_of_a_field_that_no_other_validator_sees_reads_nothing(world: World) -> None:
    spans, visits = world.of(Span), world.of(Visit)
    spans.create(id="1")
    visits.create(id="1", at=datetime(2126, 1, 1, tzinfo=UTC))

    with metered() as meter:
        spans.update("1", later="new")
        visits.update("1", note="new")

    assert (meter.consumed.read_units, meter.consumed.requests) == (0.0, 2)


def test_an_item_that_would_not_be_found_under_its_key_is_not_stored(world: World) -> None:
    coded, copied = world.of(Coded), Coded(code="B2").model_copy(update={"code": "b2"})

    for write in (
        lambda: coded.create(Coded()),
        lambda: coded.put(copied),
        lambda: coded.batch_write([Coded()]),
        lambda: world.transact(Create(Coded())),
        lambda: Repository(world.store, Coded).check(Coded()),
    ):
        with pytest.raises(InvalidKeyError, match="code: its validator makes '") as refused:
            write()
        assert refused.value.field == "code"

    assert world.raw() == []


def test_an_item_has_the_index_keys_of_what_readers_get(world: World) -> None:
    coded = world.of(Coded)
    coded.create(code="1")
    coded.put(code="2")
    coded.batch_write([Coded(code="3")])
    coded.create(code="4", email="Bob@x.org")

    found = coded.items(tenant="abc", email="ada@x.org")

    assert [each.code for each in found] == ["1", "2", "3"]


def test_an_item_is_in_no_index_for_a_value_that_readers_get_as_none(world: World) -> None:
    world.of(Coded).create(code="1")
    world.of(Coded).create(code="2", team="red")

    assert [each.code for each in world.of(Coded).items(team="red", index="by_team")] == ["2"]
    assert [row["code"]["S"] for row in world.raw() if "GSI2PK" in row] == ["2"]


REPLACED: dict[str, Callable[[World, Person], object]] = {
    "put": lambda world, item: world.people.put(item),
    "put exactly once": lambda world, item: world.people.put(item, handling="exactly-once"),
    "replace": lambda world, item: world.people.replace(item),
    "transaction": lambda world, item: world.transact(Put(item)),
}


@pytest.fixture(params=[{"ExpiresAt": {"S": "soon"}}, {"Rev": {"N": "1"}}, {"Rev": {"S": ""}}], ids=str)
def damaged(world: World, request: pytest.FixtureRequest) -> Person:
    """An item that has something else in place of its time of expiry, or of its revision."""
    item = world.people.create(person())
    [row] = world.raw()
    world.dynamodb.call("PutItem", TableName=world.table, Item={**row, **request.param})
    return item


@pytest.mark.parametrize("write", REPLACED.values(), ids=REPLACED)
def test_an_item_whose_own_attributes_cannot_be_read_is_replaced(
    world: World, damaged: Person, write: Callable[..., object]
) -> None:
    item = damaged

    write(world, item)

    assert world.people.get(item).mail == item.mail


@pytest.mark.parametrize("handling", ["plain", "exactly-once"])
def test_an_item_whose_own_attributes_cannot_be_read_is_deleted(world: World, damaged: Person, handling: Any) -> None:
    world.people.delete(damaged, handling=handling)

    assert world.raw() == []


def test_what_another_program_has_in_place_of_a_time_is_left_to_it_if_items_never_expire(world: World) -> None:
    notes = world.of(Note)
    notes.create(tenant="abc", id="1")
    [row] = world.raw()
    world.dynamodb.call("PutItem", TableName=world.table, Item={**row, "ExpiresAt": {"S": "soon"}})

    notes.put(tenant="abc", id="1", text="new")
    found = [notes.get({"tenant": "abc", "id": "1"}), *notes.list(tenant="abc"), *notes.batch_get(["1"], tenant="abc")]

    assert [None if each is None else each.text for each in found] == ["new"] * 3
    assert notes.update({"tenant": "abc", "id": "1"}, text="newer").text == "newer"
    assert [each["ExpiresAt"] for each in world.raw()] == [{"S": "soon"}]
    notes.delete({"tenant": "abc", "id": "1"})
    assert world.raw() == []
