"""Counters for tests: stock with a floor, seats with a floor and a ceiling, and likes without bounds."""

from typing import Any

from dynashard import Key, Registry, Shards
from dynashard.topology import Phase, View
from dynashard_patterns import Counter, CounterStore
from dynashard_patterns.counters.parts import C
from tests.engine.stored_things import World

REGISTRY = Registry()
KEY = {"tenant": "abc", "id": "1"}


class Stock(
    Counter,
    name="test.v1.Stock",
    key=Key(partition="{tenant}:{id}"),
    floor=0,
    shards=Shards(4),
    registry=REGISTRY,
):
    tenant: str
    id: str


class Seats(
    Counter,
    name="test.v1.Seats",
    key=Key(partition="{tenant}:{id}"),
    floor=-2,
    ceiling=10,
    shards=Shards(4),
    registry=REGISTRY,
):
    tenant: str
    id: str


class Likes(Counter, name="test.v1.Likes", key=Key(partition="{tenant}:{id}"), registry=REGISTRY):
    tenant: str
    id: str


def counters(world: World, model: type[C]) -> CounterStore[C]:
    return CounterStore(world.store, model)


def require_sound(world: World, model: type[Counter], value: int, parts: int | None = None) -> None:
    """Fail unless a counter has a value, keeps to its bounds part by part, and has no more parts than it may."""
    from dynashard_patterns.counters import bounds_of  # noqa: PLC0415 - beside what it checks

    found = counters(world, model).parts(KEY)
    bounds = bounds_of(model)
    assert found.total == value
    for side in ("value", "spare"):
        assert all(room >= 0 for room in bounds.rooms(side, found.numbers(side)))
    assert sum(found.numbers("value")) + sum(found.numbers("spare")) == 0
    stored = [item for item in world.raw() if item["Type"]["S"] == model.__dict__["__dynashard_definition__"].name]
    assert all(item["PK"]["S"].endswith(f":{int(item['SK']['S'])}") for item in stored)
    if parts is not None:
        assert len(stored) == parts


def view(count: int, target: int | None = None, phase: Phase = Phase.STABLE, **more: Any) -> View:
    return View(count, phase, target, **more)
