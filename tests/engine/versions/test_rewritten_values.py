"""Validators that came later than the items: they make an object of what is stored as another value, or rename keys."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, RootModel

from dynashard import Dynashard, Entity, Key, Registry, Update
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.api_caller import TENANT
from tests.engine.api.api_on_engine import KEYS

pytestmark = pytest.mark.engine

KEY = {"tenant_id": TENANT, "id": "a"}
EARLIER, PRESENT, STORED = Registry(), Registry(), Registry()
Change = Callable[[Dynashard, dict[str, Any]], object]


class EarlierRoom(Entity, key=Key("TENANT#{tenant_id}", "ROOM#{id}"), registry=EARLIER, name="room"):
    """Its place is a city's name."""

    tenant_id: str
    id: str
    place: str | None = None
    address: dict[str, str] | None = None
    limits: dict[str, int] | None = None
    stops: list[str] | None = None
    names: dict[str, list[str]] | None = None


class Place(BaseModel, extra="forbid"):
    """What a city's name has become."""

    city: str
    floor: int = 0


def _placed(value: Any) -> Any:
    return {"city": value} if isinstance(value, str) else value


def _first(value: Any) -> Any:
    return _placed(value[0]) if isinstance(value, list) else value


class Names(RootModel[dict[str, Annotated[Place, BeforeValidator(_first)]]]):
    """Places, of which the names were in lists."""


class Address(BaseModel, extra="forbid"):
    """An address, in which the place may be the city's name."""

    place: Annotated[Place, BeforeValidator(_placed)]
    street: str = ""


def _lower(value: Any) -> Any:
    return {key.lower(): each for key, each in value.items()} if isinstance(value, dict) else value


class Room(Entity, key=Key("TENANT#{tenant_id}", "ROOM#{id}"), registry=PRESENT, name="room"):
    """The same, as the application declares it now."""

    tenant_id: str
    id: str
    place: Annotated[Place, BeforeValidator(_placed)] | None = None
    address: Address | None = None
    limits: Annotated[dict[str, int], BeforeValidator(_lower)] | None = None
    stops: list[Annotated[Place, BeforeValidator(_placed)]] | None = None
    names: Names | None = None


class StoredRoom(Entity, key=Key("TENANT#{tenant_id}", "ROOM#{id}"), registry=STORED, name="room"):
    """The same, as it is stored."""

    tenant_id: str
    id: str
    place: dict[str, Any] | None = None
    address: dict[str, Any] | None = None
    limits: dict[str, int] | None = None


def updated(guarantee: str) -> Change:
    return lambda db, fields: db.collection(Room).update(KEY, set=fields, handling=guarantee)


def in_a_transaction(db: Dynashard, fields: dict[str, Any]) -> object:
    return db.transact(Update(Room, KEY, set=fields, returns=True))


def replaced(guarantee: str | None) -> Change:
    def change(db: Dynashard, fields: dict[str, Any]) -> object:
        rooms = db.collection(Room)
        return rooms.put(rooms.get(KEY).model_copy(update=fields), handling=guarantee)

    return change


def over_what_was_read(guarantee: str | None) -> Change:
    def change(db: Dynashard, fields: dict[str, Any]) -> object:
        rooms = db.collection(Room)
        read = rooms.get(KEY)
        return rooms.put(read.model_copy(update=fields), over=read, handling=guarantee)

    return change


CHANGES = {
    "updated plain": updated("plain"),
    "updated guarded": updated("guarded"),
    "updated exactly once": updated("exactly-once"),
    "in a transaction": in_a_transaction,
    "replaced": replaced(None),
    "replaced plain": replaced("plain"),
    "replaced guarded": replaced("guarded"),
    "replaced exactly once": replaced("exactly-once"),
    "over": over_what_was_read(None),
    "over guarded": over_what_was_read("guarded"),
    "over exactly once": over_what_was_read("exactly-once"),
}


@pytest.fixture
def db(wire: Transport, table: str) -> Dynashard:
    return Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize(
    ("stored", "fields"),
    [
        ({"place": "Paris"}, {"place": Place(city="Paris", floor=3)}),
        ({"place": "Paris"}, {"place": Place(city="Rome", floor=3)}),
        ({"place": "Paris"}, {"place": None}),
        ({"address": {"place": "Paris", "street": "Rue"}}, {"address": Address(place=Place(city="Rome", floor=3))}),
        ({"address": {"place": "Paris"}}, {"address": Address(place=Place(city="Rome", floor=3), street="Via")}),
        ({"limits": {"Day": 1, "WEEK": 7}}, {"limits": {"day": 2, "week": 7}}),
        ({"limits": {"Day": 1, "WEEK": 7}}, {"limits": {"month": 30}}),
        ({"stops": ["Paris", "Rome"]}, {"stops": [Place(city="Paris", floor=1), Place(city="Rome")]}),
        ({"names": {"first": ["Paris"]}}, {"names": Names({"first": Place(city="Paris", floor=1)})}),
    ],
)
def test_such_a_value_can_be_changed(
    db: Dynashard, change: Change, stored: dict[str, Any], fields: dict[str, Any]
) -> None:
    db.collection(EarlierRoom).create(EarlierRoom(**KEY, **stored))

    change(db, fields)

    read = db.collection(Room).get(KEY, consistent=True)
    assert {name: getattr(read, name) for name in fields} == fields


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_members_beside_it_that_are_not_declared_stay(db: Dynashard, change: Change) -> None:
    address = {"place": "Paris", "street": "Rue", "code": "75001"}
    db.collection(EarlierRoom).create(EarlierRoom(**KEY, address=address, limits={"Day": 1}))

    change(db, {"address": Address(place=Place(city="Rome"), street="Via")})

    stored = db.collection(StoredRoom).get(KEY, consistent=True)
    assert stored.address == {"place": {"city": "Rome", "floor": 0}, "street": "Via", "code": "75001"}
    assert stored.limits in ({"Day": 1}, {"day": 1})
