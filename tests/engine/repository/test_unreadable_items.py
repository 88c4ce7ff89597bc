"""An item that readers could not read is refused before it is stored, however it is written."""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import StringConstraints

from dynashard import Create, Entity, Key, Put, Registry, Update
from dynashard.errors import InvalidKeyError, InvalidValueError
from dynashard.repository import Repository
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
