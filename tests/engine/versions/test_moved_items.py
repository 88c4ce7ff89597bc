"""Resizes move and rewrite items as they stand, with what only another version declares."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from dynashard import Entity, Key, Put, Registry, Shards
from dynashard.transport import Transport
from tests.engine.resharding.resharding_world import ABC, Moving, Thing, index, moving_world

pytestmark = pytest.mark.engine

THEIRS: dict[str, Any] = {
    "GSI3PK": {"S": "newer"},
    "GSI3SK": {"S": "index"},
    "Newer": {"M": {"field": {"SS": ["a", "b"]}}},
}


class OldPoint(BaseModel, extra="forbid"):
    x: int


class NewPoint(OldPoint, extra="forbid"):
    z: int


class OldPlace(Entity, name="move.v1.Thing", key=Key("{tenant}", "{id}"), shards=Shards(4), registry=Registry()):
    tenant: str
    id: str
    at: OldPoint


class NewPlace(Entity, name="move.v1.Thing", key=Key("{tenant}", "{id}"), shards=Shards(4), registry=Registry()):
    tenant: str
    id: str
    at: NewPoint


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        made.fill(Thing, 20, colour=lambda _: "red")
        for item in made.raw():
            made.put({**item, **THEIRS})
        yield made


def test_a_move_keeps_what_another_version_has_stored(world: Moving) -> None:
    world.resize(ABC, 8)

    items = world.raw()
    assert len(items) == 20
    assert len({item["PK"]["S"] for item in items}) > 4
    assert all(item.items() >= THEIRS.items() for item in items)


@pytest.mark.parametrize("stage", ["prepare", "move", "settle", "sweep"])
def test_writes_during_a_move_keep_it(world: Moving, stage: str) -> None:
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    things = world.of(Thing)

    for number in range(20):
        things.put(Thing(tenant="abc", id=f"{number:04d}", text=stage))
    world.finish(ABC)

    items = world.raw()
    assert [item["text"] for item in items] == [{"S": stage}] * 20
    assert all(item.items() >= THEIRS.items() for item in items)


@pytest.mark.parametrize("stage", ["prepare", "move", "settle", "sweep"])
def test_writes_during_a_move_keep_members_of_objects(world: Moving, stage: str) -> None:
    names = [f"{number:04d}" for number in range(20)]
    new = world.of(NewPlace)
    for number, name in enumerate(names):
        new.put(NewPlace(tenant="abc", id=name, at=NewPoint(x=0, z=number)))
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    client = world.client()
    old = client.collection(OldPlace)

    for name in names[:7]:
        old.put(OldPlace(tenant="abc", id=name, at=OldPoint(x=1)))
    for name in names[7:14]:
        old.update({"tenant": "abc", "id": name}, set={"at": OldPoint(x=1)})
    for name in names[14:]:
        client.transact(Put(OldPlace(tenant="abc", id=name, at=OldPoint(x=1))))
    world.finish(ABC)

    found = world.of(NewPlace).list(tenant="abc", order="ordered").items
    assert [item.at for item in found] == [NewPoint(x=1, z=number) for number in range(20)]


def test_a_resize_of_an_index_keeps_it(world: Moving) -> None:
    before = {item["SK"]["S"]: item["GSI2PK"] for item in world.raw()}

    world.resharder.start(index(Thing, "by_colour"), 8, rewrite=True)
    world.finish(index(Thing, "by_colour"))

    items = world.raw()
    assert any(item["GSI2PK"] != before[item["SK"]["S"]] for item in items)
    assert all(item.items() >= THEIRS.items() for item in items)
