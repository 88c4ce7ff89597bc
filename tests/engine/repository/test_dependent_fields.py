"""Updates of entities whose validators see several fields: these judge the whole, and what they change is written."""

from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationInfo, field_validator, model_validator

from dynashard import Create, Entity, Index, Key, Registry, Shards, Update
from dynashard.errors import InvalidKeyError, InvalidValueError, NotUniqueError, TransactionRefusedError
from dynashard.schema import PK
from tests.engine.stored_things import World

pytestmark = pytest.mark.engine

OWN = Registry()
DECLARED: dict[str, Any] = {
    "key": Key("{tenant}", "{id}"),
    "shards": Shards(2),
    "indexes": [Index("GSI1", "by_address", partition="{tenant}", sort="{address}")],
    "unique": "address",
    "registry": OWN,
}


class ByWhole(Entity, name="test.v1.ByWhole", **DECLARED):
    tenant: str = "abc"
    id: str
    mail: str
    address: str | None = None
    visits: int = 0

    @model_validator(mode="after")
    def normalised(self) -> "ByWhole":
        self.__dict__["address"] = self.mail.lower()
        return self


class ByField(Entity, name="test.v1.ByField", **DECLARED):
    tenant: str = "abc"
    id: str
    mail: str
    address: Annotated[str | None, Field(validate_default=True)] = None
    visits: int = 0

    @field_validator("address")
    @classmethod
    def normalised(cls, _: str | None, info: ValidationInfo) -> str:
        mail: str = info.data["mail"]
        return mail.lower()


class AtLast(Entity, name="test.v1.AtLast", **DECLARED):
    tenant: str = "abc"
    id: str
    mail: str
    address: str | None = None
    visits: int = 0

    def model_post_init(self, _: Any) -> None:
        self.__dict__["address"] = self.mail.lower()


class Span(Entity, name="test.v1.Span", key=Key("{id}"), registry=OWN):
    """An entity with a field that is checked against the one before it."""

    class Kind(Enum):
        SHORT = "short"

    id: str = "1"
    begin: int
    end: int
    kind: Kind = Kind.SHORT
    capped: int = 0

    @field_validator("end")
    @classmethod
    def ordered(cls, end: int, info: ValidationInfo) -> int:
        if end < info.data["begin"]:
            raise ValueError("end is before begin")
        return end

    @field_validator("capped")
    @classmethod
    def at_most_end(cls, capped: int, info: ValidationInfo) -> int:
        end: int = info.data.get("end", capped)
        return min(capped, end)


class Named(Entity, name="test.v1.Named", key=Key("{id}"), registry=OWN):
    """An entity whose key a validator makes."""

    name: str
    id: str = ""

    @model_validator(mode="after")
    def named(self) -> "Named":
        self.__dict__["id"] = self.name.lower()
        return self


DERIVED = [ByWhole, ByField, AtLast]


def update(world: World, model: type[Any], how: str, **fields: Any) -> None:
    if how == "transaction":
        world.transact(Update(model, {"tenant": "abc", "id": "1"}, set=fields))
    else:
        world.of(model).update({"tenant": "abc", "id": "1"}, set=fields, handling=how)


@pytest.mark.parametrize("model", DERIVED)
@pytest.mark.parametrize("how", ["plain", "guarded", "exactly-once", "transaction"])
def test_a_field_that_follows_another_is_written_with_it(world: World, model: type[Any], how: str) -> None:
    items = world.of(model)
    items.create(model(id="1", mail="Ada"))

    update(world, model, how, mail="Eve")

    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    assert (row["mail"], row["address"]) == ({"S": "Eve"}, {"S": "eve"})
    assert [sort for _, sort in world.entries("GSI1")] == ["eve"]
    assert items.get(tenant="abc", address="eve").mail == "Eve"
    assert items.create(model(id="2", mail="ADA")).address == "ada"


@pytest.mark.parametrize("model", DERIVED)
@pytest.mark.parametrize("how", ["plain", "guarded", "exactly-once", "transaction"])
def test_a_field_that_follows_another_stays_unique(world: World, model: type[Any], how: str) -> None:
    items = world.of(model)
    items.create(model(id="1", mail="Ada"))
    items.create(model(id="2", mail="Bob"))
    before = world.raw()

    with pytest.raises((NotUniqueError, TransactionRefusedError)):
        update(world, model, how, mail="BOB")

    assert world.raw() == before


@pytest.mark.parametrize("model", DERIVED)
def test_an_update_of_another_field_is_a_single_write(world: World, model: type[Any]) -> None:
    world.of(model).create(model(id="1", mail="Ada"))
    wire = world.faults()

    assert world.of(model).update({"tenant": "abc", "id": "1"}, visits=2, add={}).visits == 2

    # The validators of a field see only the fields before it; those of the whole see this one too.
    read = [] if model is ByField else ["GetItem"]
    assert [call.operation for call in wire.calls] == [*read, "UpdateItem"]


@pytest.mark.parametrize("model", DERIVED)
def test_an_item_that_was_stored_before_the_field_keeps_its_value(world: World, model: type[Any]) -> None:
    items = world.of(model)
    items.create(model(id="1", mail="Ada"))
    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    world.adopt({name: value for name, value in row.items() if name != "address"})

    with pytest.raises(NotUniqueError):
        items.create(model(id="2", mail="ADA"))

    assert items.get(tenant="abc", address="ada").id == "1"
    items.delete(tenant="abc", id="1")
    assert world.raw() == []


def test_a_field_is_checked_against_those_before_it(world: World) -> None:
    spans = world.of(Span)
    spans.create(Span(begin=5, end=9))
    before = world.raw()

    for refused in ({"end": 4}, {"begin": 10}, {"begin": 20, "end": 19}, {"end": "late"}):
        with pytest.raises(InvalidValueError):
            spans.update(id="1", set=refused)
    with pytest.raises(InvalidValueError):
        spans.update(id="1", add={"end": -5})
    assert world.raw() == before

    spans.update(id="1", set={"begin": 20, "end": "30"})
    assert (world.only()["begin"], world.only()["end"]) == ({"N": "20"}, {"N": "30"})
    assert spans.part(id="1", fields=["end"]).values == {"end": 30}


def test_a_sum_that_a_validator_changes_is_stored_as_it_is_read(world: World) -> None:
    world.of(Span).create(Span(begin=5, end=9, capped=8))

    world.transact(Update(Span, {"id": "1"}, add={"capped": 5}))

    assert world.only()["capped"] == {"N": "9"}


def test_an_item_with_a_value_of_another_version_can_still_be_updated(world: World) -> None:
    world.of(Span).create(Span(begin=5, end=9))
    world.adopt({**world.only(), "kind": {"S": "long"}})

    world.of(Span).update(id="1", end=10)

    assert (world.only()["end"], world.only()["kind"]) == ({"N": "10"}, {"S": "long"})


def test_an_update_that_would_change_the_key_is_refused(world: World) -> None:
    world.of(Named).create(Named(name="Ada"))
    before = world.raw()

    for write in (
        lambda: world.of(Named).update({"id": "ada"}, set={"name": "Bob"}),
        lambda: world.transact(Create(Named(name="Eve")), Update(Named, {"id": "ada"}, set={"name": "Bob"})),
    ):
        with pytest.raises(InvalidKeyError, match="id is part of the key, which cannot change"):
            write()

    assert world.raw() == before
    assert world.of(Named).update({"id": "ada"}, set={"name": "ADA"}).name == "ADA"
    assert world.only()[PK] == {"S": "test.v1.Named:ada"}
