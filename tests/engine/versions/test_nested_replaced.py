"""Writes that have read nothing keep the members of objects that only a newer version declares."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from dynashard import Dynashard, Entity, Key, Put, Registry, Shards, Update
from dynashard.codec import register_encoder
from dynashard.errors import NotFoundError, RevisionMismatchError, TransactionRefusedError
from dynashard.testing.faults import FaultyTransport
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.declaring import new_class
from tests.engine.api.api_on_engine import KEYS

pytestmark = pytest.mark.engine

KEY = {"tenant_id": "abc", "id": "h"}


class OldPoint(BaseModel, extra="forbid"):
    x: int
    y: int | None = None


class NewPoint(OldPoint, extra="forbid"):
    z: int | None = None


class OldTile(BaseModel, extra="forbid"):
    x: int = 0


class OldRoof(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    slope: int


class NewRoof(OldRoof):
    tiles: int


@dataclass(config=ConfigDict(extra="forbid"))
class OldDoor:
    wide: int


@dataclass(config=ConfigDict(extra="forbid"))
class NewDoor:
    wide: int
    color: str = "red"


register_encoder(OldDoor, asdict)
register_encoder(NewDoor, asdict)


class OldPlace(BaseModel, extra="forbid"):
    city: str
    at: OldPoint | None = None


class NewPlace(BaseModel, extra="forbid"):
    city: str
    at: NewPoint | None = None


class OldHouse(Entity, name="replaced.v1.House", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=Registry()):
    tenant_id: str
    id: str
    name: str = ""
    place: OldPlace | None = None
    rooms: dict[str, OldPoint] = Field(default_factory=dict)
    sizes: dict[str, int] = Field(default_factory=dict)
    marks: RootModel[dict[str, int]] | None = None


class NewHouse(Entity, name="replaced.v1.House", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=Registry()):
    tenant_id: str
    id: str
    name: str = ""
    place: NewPlace | None = None
    rooms: dict[str, NewPoint] = Field(default_factory=dict)
    sizes: dict[str, int] = Field(default_factory=dict)
    marks: RootModel[dict[str, int]] | None = None


OLD = OldHouse(**KEY, name="a", place=OldPlace(city="Rome", at=OldPoint(x=1)), rooms={"hall": OldPoint(x=2)})
NEW = NewHouse(**KEY, place=NewPlace(city="Paris", at=NewPoint(x=5, z=6)), rooms={"hall": NewPoint(x=7, z=8)})

Write = Callable[[Dynashard, OldHouse], object]


def put(db: Dynashard, house: OldHouse) -> object:
    return db.collection(OldHouse).put(house)


def put_if_match(db: Dynashard, house: OldHouse) -> object:
    houses = db.collection(OldHouse)
    return houses.put(house, if_match=houses.get(KEY, consistent=True).revision)


def update(db: Dynashard, house: OldHouse) -> object:
    return db.collection(OldHouse).update(KEY, set={"name": "a", "place": house.place, "rooms": house.rooms})


def put_in_a_transaction(db: Dynashard, house: OldHouse) -> object:
    return db.transact(Put(house))


def update_in_a_transaction(db: Dynashard, house: OldHouse) -> object:
    return db.transact(Update(OldHouse, KEY, set={"name": "a", "place": house.place, "rooms": house.rooms}))


WRITES: Sequence[Write] = (put, put_if_match, update, put_in_a_transaction, update_in_a_transaction)


class World:
    def __init__(self, wire: Transport, table: str) -> None:
        self.wire = FaultyTransport(wire, ())
        self.table = table
        self.db = Dynashard(self.wire, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)

    def sent(self, act: Callable[[], object]) -> list[str]:
        before = len(self.wire.calls)
        act()
        return [call.operation for call in self.wire.calls[before:]]

    @property
    def house(self) -> NewHouse:
        found: NewHouse = self.db.collection(NewHouse).get(KEY, consistent=True)
        return found


@pytest.fixture
def world(wire: Transport, table: str) -> World:
    return World(wire, table)


@pytest.mark.parametrize("write", WRITES)
def test_members_that_it_does_not_declare_stay(world: World, write: Write) -> None:
    world.db.collection(NewHouse).create(NEW)

    write(world.db, OLD)

    assert world.house.name == "a"
    assert world.house.place == NewPlace(city="Rome", at=NewPoint(x=1, z=6))
    assert world.house.rooms == {"hall": NewPoint(x=2, z=8)}


@pytest.mark.parametrize("write", WRITES)
def test_a_member_that_stands_in_place_of_a_declared_one_stays(world: World, write: Write) -> None:
    """The objects have as many members as are declared, but others."""
    world.db.collection(NewHouse).create(NEW)
    [row] = world.wire.call("Scan", {"TableName": world.table})["Items"]
    point = {"M": {"x": {"N": "5"}, "z": {"N": "6"}}}
    place = {"M": {"city": {"S": "Paris"}, "at": point}}
    world.wire.call("PutItem", {"TableName": world.table, "Item": {**row, "place": place, "rooms": {"M": {}}}})

    write(world.db, OLD)

    assert world.house.place == NewPlace(city="Rome", at=NewPoint(x=1, z=6))


@pytest.mark.parametrize(
    ("write", "requests"),
    [
        (put, ["UpdateItem"]),
        (put_if_match, ["GetItem", "UpdateItem"]),
        (update, ["UpdateItem"]),
        (put_in_a_transaction, ["TransactWriteItems"]),
        (update_in_a_transaction, ["TransactWriteItems"]),
    ],
)
def test_an_item_of_its_own_version_takes_one_request(world: World, write: Write, requests: list[str]) -> None:
    stored = OldHouse(**KEY, place=OldPlace(city="Oslo"), rooms={"a": OldPoint(x=9)}, sizes={"a": 1, "b": 2})
    world.db.collection(OldHouse).create(stored)

    assert world.sent(lambda: write(world.db, OLD)) == requests

    assert world.house.place == NewPlace(city="Rome", at=NewPoint(x=1))
    assert world.house.rooms == {"hall": NewPoint(x=2)}


def test_objects_are_stored_where_there_are_none(world: World) -> None:
    assert world.sent(lambda: put(world.db, OLD)) == ["UpdateItem"]
    assert world.house.rooms == {"hall": NewPoint(x=2)}

    world.db.collection(OldHouse).put(OldHouse(**KEY))
    assert world.house.rooms == {}

    assert world.sent(lambda: update(world.db, OLD)) == ["UpdateItem"]
    assert world.house.rooms == {"hall": NewPoint(x=2)}


def test_maps_that_are_not_objects_are_replaced_in_one_request(world: World) -> None:
    marks = RootModel[dict[str, int]]
    world.db.collection(OldHouse).create(OldHouse(**KEY, sizes={"a": 1, "b": 2}, marks=marks({"c": 1, "d": 1})))

    assert world.sent(lambda: put(world.db, OldHouse(**KEY, sizes={"c": 3}, marks=marks({"c": 2})))) == ["UpdateItem"]

    assert (world.house.sizes, world.house.marks) == ({"c": 3}, marks({"c": 2}))


@pytest.mark.parametrize("write", WRITES[2:])
def test_an_item_that_is_not_there_or_at_another_revision_is_refused_as_before(world: World, write: Write) -> None:
    houses = world.db.collection(OldHouse)
    if write is update:
        with pytest.raises(NotFoundError):
            write(world.db, OLD)
    elif write is update_in_a_transaction:
        with pytest.raises(TransactionRefusedError):
            write(world.db, OLD)
    world.db.collection(NewHouse).create(NEW)

    def put_another() -> None:
        with pytest.raises(RevisionMismatchError):
            houses.put(OLD, if_match="another")

    assert world.sent(put_another) == ["UpdateItem"]
    with pytest.raises(RevisionMismatchError):
        houses.update(KEY, set={"place": OLD.place}, if_match="another")
    with pytest.raises(TransactionRefusedError):
        world.db.transact(Put(OLD, if_match="another"))

    assert world.house.place == NEW.place


class OldShed(Entity, name="replaced.v1.Shed", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    roof: OldRoof


class NewShed(Entity, name="replaced.v1.Shed", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    roof: NewRoof


def test_members_of_typed_dicts_stay(world: World) -> None:
    world.db.collection(NewShed).create(NewShed(**KEY, roof={"slope": 1, "tiles": 2}))

    world.db.collection(OldShed).put(OldShed(**KEY, roof={"slope": 3}))

    assert world.db.collection(NewShed).get(KEY, consistent=True).roof == {"slope": 3, "tiles": 2}


class OldGate(Entity, name="replaced.v1.Gate", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    door: OldDoor


class NewGate(Entity, name="replaced.v1.Gate", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    door: NewDoor


def test_members_of_dataclasses_stay(world: World) -> None:
    world.db.collection(NewGate).create(NewGate(**KEY, door=NewDoor(1, "blue")))

    world.db.collection(OldGate).put(OldGate(**KEY, door=OldDoor(4)))

    assert world.db.collection(NewGate).get(KEY, consistent=True).door == NewDoor(4, "blue")


class Tent(Entity, name="replaced.v1.Tent", key=Key("{tenant_id}", "{id}"), expires="until", registry=Registry()):
    tenant_id: str
    id: str
    at: OldPoint
    until: datetime | None = None


def test_an_expired_item_takes_no_read(world: World) -> None:
    tents = world.db.collection(Tent)
    tents.create(Tent(**KEY, at=OldPoint(x=1), until=datetime.now(UTC) + timedelta(hours=1)))
    [row] = world.wire.call("Scan", {"TableName": world.table})["Items"]
    world.wire.call("PutItem", {"TableName": world.table, "Item": {**row, "ExpiresAt": {"N": "1"}}})

    assert world.sent(lambda: tents.put(Tent(**KEY, at=OldPoint(x=2)))) == ["UpdateItem", "PutItem"]

    assert tents.get(KEY, consistent=True).at == OldPoint(x=2)


class OldLog(
    Entity,
    name="replaced.v1.Log",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2, placement="random"),
    registry=Registry(),
):
    tenant_id: str
    id: str
    at: OldPoint


class NewLog(
    Entity,
    name="replaced.v1.Log",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2, placement="random"),
    registry=Registry(),
):
    tenant_id: str
    id: str
    at: NewPoint


def test_members_of_items_of_random_placement_stay(world: World) -> None:
    world.db.collection(NewLog).create(NewLog(**KEY, at=NewPoint(x=1, z=2)))

    world.db.collection(OldLog).put(OldLog(**KEY, at=OldPoint(x=3)))
    world.db.collection(OldLog).update(KEY, set={"at": OldPoint(x=4)})

    assert world.db.collection(NewLog).get(KEY, consistent=True).at == NewPoint(x=4, z=2)


def test_an_item_with_too_many_objects_for_a_condition_is_read_first(world: World) -> None:
    rooms: dict[str, Any] = {f"room{number}": NewPoint(x=number, z=number) for number in range(60)}
    world.db.collection(NewHouse).create(NewHouse(**KEY, rooms=rooms))
    changed = {name: OldPoint(x=100) if name == "room7" else OldPoint(x=point.x) for name, point in rooms.items()}

    put(world.db, OldHouse(**KEY, rooms=changed))

    assert world.house.rooms == {**rooms, "room7": NewPoint(x=100, z=7)}


class Empty(BaseModel, extra="forbid"):
    """An object whose members only a newer version declares."""


@pytest.mark.parametrize(("empty", "more"), [(50, 0), (31, 14)], ids=["without members", "with a member or without"])
def test_a_condition_on_short_objects_has_at_most_300_operators(world: World, *, empty: int, more: int) -> None:
    """DynamoDB takes no more, which local engines do not check."""
    kinds: list[type[BaseModel]] = [Empty] * empty + [OldTile] * more
    fields = {f"field{number}": kind for number, kind in enumerate(kinds)}
    annotations = {"tenant_id": str, "id": str, **fields}
    key = Key("{tenant_id}", "{id}")
    wall = new_class("Wall", {"__annotations__": annotations, "__module__": __name__}, name="replaced.v1.Wall", key=key,
                     registry=Registry())  # fmt: skip
    walls, made = world.db.collection(wall), wall(**KEY, **{name: kind() for name, kind in fields.items()})
    walls.create(made)

    sent = world.sent(lambda: walls.put(made))

    conditions = [call.request.get("ConditionExpression", "") for call in world.wire.calls[-len(sent) :]]
    operators = re.compile(r"\b(?:AND|OR|NOT|size|attribute_\w+)\b|[<>]?=")
    assert max(len(operators.findall(condition)) for condition in conditions) <= 300
    assert sent == ["UpdateItem", "GetItem", "UpdateItem"]
