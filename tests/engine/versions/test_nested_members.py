"""Changes of nested objects keep the members that only a newer version declares, if the change reads the item."""

from collections.abc import Callable
from typing import Annotated

import pytest
from pydantic import BaseModel, BeforeValidator, Field, JsonValue

from dynashard import Dynashard, Entity, Key, Registry, Update
from dynashard.testing.faults import FaultyTransport
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import Attachment
from tests.api_caller import TENANT
from tests.engine.api.api_on_engine import KEYS
from tests.engine.versions.two_versions import NewPlace, NewTask, OldPlace, OldTask

pytestmark = pytest.mark.engine

KEY = {"tenant_id": TENANT, "id": "t"}
Change = Callable[[Dynashard, OldPlace], object]


def guarded(db: Dynashard, place: OldPlace) -> object:
    return db.collection(OldTask).update(KEY, set={"place": place, "title": "changed"}, handling="guarded")


def exactly_once(db: Dynashard, place: OldPlace) -> object:
    return db.collection(OldTask).update(KEY, set={"place": place, "title": "changed"}, handling="exactly-once")


def in_a_transaction(db: Dynashard, place: OldPlace) -> object:
    return db.transact(Update(OldTask, KEY, set={"place": place, "title": "changed"}, returns=True))


def plain(db: Dynashard, place: OldPlace) -> object:
    return db.collection(OldTask).update(KEY, set={"place": place, "title": "changed"})


class World:
    def __init__(self, wire: Transport, table: str) -> None:
        self.wire = FaultyTransport(wire, ())
        self.table = table
        self.db = Dynashard(self.wire, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)

    def store(self, place: NewPlace | None) -> None:
        self.db.collection(NewTask).create(NewTask(**KEY, title="a", owner="ann", place=place))

    def place(self) -> NewPlace | None:
        place: NewPlace | None = self.db.collection(NewTask).get(KEY, consistent=True).place
        return place


@pytest.fixture
def world(wire: Transport, table: str) -> World:
    return World(wire, table)


@pytest.mark.parametrize(
    ("change", "requests"),
    [(guarded, ["GetItem", "UpdateItem"]), (exactly_once, None), (in_a_transaction, ["GetItem", "TransactWriteItems"])],
)
def test_an_update_that_reads_the_item_keeps_members_that_it_does_not_declare(
    world: World, change: Change, requests: list[str] | None
) -> None:
    world.store(NewPlace(city="Paris", street="Rue", floor=3))
    before = len(world.wire.calls)

    change(world.db, OldPlace(city="Rome"))

    sent = [call.operation for call in world.wire.calls[before:]]
    assert world.place() == NewPlace(city="Rome", street=None, floor=3)
    assert world.db.collection(OldTask).get(KEY).title == "changed"
    assert requests in (None, sent)


@pytest.mark.parametrize("change", [guarded, exactly_once, in_a_transaction, plain])
def test_an_object_is_stored_where_there_is_none(world: World, change: Change) -> None:
    world.store(None)

    change(world.db, OldPlace(city="Rome"))

    assert world.place() == NewPlace(city="Rome")


@pytest.mark.parametrize("change", [guarded, in_a_transaction])
def test_an_object_can_be_removed_and_set_to_what_it_is(world: World, change: Change) -> None:
    world.store(NewPlace(city="Paris", floor=3))
    change(world.db, OldPlace(city="Paris"))
    same = world.place()

    world.db.collection(OldTask).update(KEY, remove=["place"], handling="guarded")

    assert (same, world.place()) == (NewPlace(city="Paris", floor=3), None)


class OldSheet(BaseModel, extra="forbid"):
    cells: dict[str, int] = Field(default_factory=dict)


class NewSheet(BaseModel, extra="forbid"):
    cells: dict[str, int] = Field(default_factory=dict)
    color: str | None = None


class OldBook(Entity, name="nested.v1.Book", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    sheet: Annotated[OldSheet, BeforeValidator(lambda value: OldSheet() if value == "empty" else value)]
    text: Annotated[JsonValue | None, Attachment()] = None


class NewBook(Entity, name="nested.v1.Book", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str
    sheet: NewSheet
    text: Annotated[JsonValue | None, Attachment()] = None


def test_an_update_of_an_attachment_keeps_members_that_it_does_not_declare(world: World) -> None:
    world.db.collection(NewBook).create(NewBook(**KEY, sheet=NewSheet(cells={"a": 1, "b": 2}, color="red")))

    changed = OldSheet(cells={"b": 3, "c": 4})
    world.db.collection(OldBook).update(KEY, set={"sheet": changed, "text": "long"})

    found = world.db.collection(NewBook).get(KEY, include=["text"], consistent=True)
    assert (found.sheet, found.text) == (NewSheet(cells={"b": 3, "c": 4}, color="red"), "long")


def test_an_object_is_written_whole_if_its_members_do_not_fit_into_an_expression(world: World) -> None:
    world.db.collection(NewBook).create(NewBook(**KEY, sheet=NewSheet(cells={"a": 1}, color="red")))

    cells = {f"c{number}": number for number in range(400)}
    world.db.collection(OldBook).update(KEY, set={"sheet": OldSheet(cells=cells)}, handling="guarded")

    assert world.db.collection(NewBook).get(KEY, consistent=True).sheet == NewSheet(cells=cells)


def test_an_object_replaces_what_a_validator_reads_as_one(world: World) -> None:
    world.db.collection(NewBook).create(NewBook(**KEY, sheet=NewSheet()))
    [row] = world.wire.call("Scan", {"TableName": world.table})["Items"]
    world.wire.call("PutItem", {"TableName": world.table, "Item": {**row, "sheet": {"S": "empty"}}})

    world.db.collection(OldBook).update(KEY, set={"sheet": OldSheet(cells={"a": 1})}, handling="guarded")

    assert world.db.collection(NewBook).get(KEY, consistent=True).sheet == NewSheet(cells={"a": 1})
