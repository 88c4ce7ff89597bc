"""Updates of entities whose validators see several fields: these judge the whole, and what they change is written."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationInfo, field_validator, model_validator

from dynashard import Collection, Create, Entity, Index, Key, Registry, Retention, Shards, Update
from dynashard.errors import InvalidKeyError, InvalidValueError, NotUniqueError, TransactionRefusedError
from dynashard.schema import PK
from tests.engine.stored_things import World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

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


class Parcel(
    Entity,
    name="test.v1.Parcel",
    key=Key("{tenant}", "{id}"),
    shards=Shards(2),
    indexes=[Index("GSI1", "by_sent", partition="{tenant}", sort="{sent}#{arrives}")],
    expires="until",
    registry=OWN,
):
    """An entity with fields that follow from others, in each way that pydantic has."""

    tenant: str = "abc"
    id: str = "1"
    limit: int
    sent: datetime
    weight: int
    arrives: datetime
    kind: Span.Kind = Span.Kind.SHORT
    code: int
    share: int
    note: str = Field(default_factory=lambda data: f"{data['weight']} of {data['limit']}")
    until: Annotated[datetime | None, Retention("sent", days=30_000), Field(validate_default=True)] = None
    plain: str = ""

    @field_validator("weight")
    @classmethod
    def light(cls, weight: int, info: ValidationInfo) -> int:
        if weight > info.data.get("limit", 0):
            raise ValueError("too heavy")
        return weight

    @field_validator("arrives")
    @classmethod
    def later(cls, arrives: datetime, info: ValidationInfo) -> datetime:
        sent: datetime = info.data.get("sent", datetime.max.replace(tzinfo=UTC))
        return max(arrives, sent)

    @field_validator("kind", mode="wrap")
    @classmethod
    def known(cls, kind: Any, handler: Any, info: ValidationInfo) -> Any:
        assert info.data["sent"], "unknown"
        return handler(kind)

    @field_validator("code", mode="plain")
    @classmethod
    def even(cls, code: Any, info: ValidationInfo) -> int:
        return int(code) // info.data["limit"] * info.data["limit"]  # type: ignore[no-any-return]

    @field_validator("share", mode="before")
    @classmethod
    def whole(cls, share: Any, info: ValidationInfo) -> Any:
        return share if 100 / info.data.get("limit", 0) else 0


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


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(3)
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


ALL = {"tenant": "abc"}
FOLLOWING = ["weight", "arrives", "kind", "code", "share", "note", "until"]
Read = Callable[[Collection[Parcel], list[str]], Iterator[Any]]
READS: dict[str, Read] = {
    "one": lambda parcels, fields: iter([parcels.part({**ALL, "id": "1"}, fields=fields).values]),
    "page": lambda parcels, fields: iter(parcels.list(ALL, fields=fields).items),
    "ordered": lambda parcels, fields: iter(parcels.list(ALL, fields=fields, order="ordered").items),
    "index": lambda parcels, fields: iter(parcels.list(ALL, fields=fields, index="by_sent").items),
    "filtered": lambda parcels, fields: iter(parcels.list(ALL, fields=fields, filters={"weight": 3}).items),
    "scan": lambda parcels, fields: iter(parcels.scan(ALL, fields=fields)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("lacking", [[], ["note", "ExpiresAt"]], ids=["as stored", "stored before a field"])
def test_a_field_that_follows_others_is_read_by_itself_as_with_them(
    world: World, read: Read, lacking: list[str]
) -> None:
    sent = datetime(2026, 1, 2, tzinfo=UTC)
    parcels = world.of(Parcel)
    parcels.create(Parcel(limit=5, sent=sent, weight=3, arrives=sent - timedelta(1), code=17, share=1))
    world.adopt({name: value for name, value in world.only().items() if name not in lacking})
    whole = parcels.get(tenant="abc", id="1")

    for fields in (*([name] for name in FOLLOWING), ["plain", *FOLLOWING], ["id", "weight"]):
        assert list(read(parcels, fields)) == [{name: getattr(whole, name) for name in fields}]
    assert (whole.note, whole.code, whole.arrives) == ("3 of 5", 15, sent)


def test_fields_that_follow_none_are_read_without_others(world: World) -> None:
    world.of(Span).create(Span(begin=5, end=9))
    wire = world.faults()

    assert world.of(Span).part(id="1", fields=["begin"]).values == {"begin": 5}

    assert "end" not in wire.calls[-1].request["ExpressionAttributeNames"].values()


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
