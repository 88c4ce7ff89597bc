"""The count of an index grows for new entries alone, whatever places the items, and beside an epoch."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynashard import Entity, Index, Key, Registry, Shards, definition, new_id
from dynashard.entity import EntityDefinition
from dynashard.errors import ReshardRefusedError
from dynashard.resharding import Resharder, Scope
from dynashard.routing import index_home
from dynashard.schema import SK
from tests.engine.epochs.epochs_world import Epochs, Event, partition

pytestmark = pytest.mark.engine

RED = {"tenant": "abc", "kind": "red"}
ORDERS = ("round_robin", "ordered", "shard")


def placed(name: str, shards: Shards) -> type[Any]:
    """Return an entity with this placement, and an index of 2 shards."""

    class Placed(
        Entity,
        name=name,
        key=Key("{tenant}", "{id}"),
        shards=shards,
        indexes=[Index("GSI1", "by_kind", "{tenant}:{kind}", "{id}", shards=Shards(2, max=64))],
        registry=Registry(),
    ):
        tenant: str
        id: str = new_id()
        n: int = 0
        kind: str | None = None

    return Placed


MODELS = {
    "epochs": placed("indexed.v1.Timed", Shards(start=1, max=64, placement="epochs")),
    "random": placed("indexed.v1.Random", Shards(4, placement="random")),
    "modulo": placed("indexed.v1.Modulo", Shards(10, placement="modulo")),
}


def index_of(model: type[Entity]) -> Scope:
    entity = definition(model)
    return Scope(entity, None, entity.indexes["by_kind"])


def written(world: Epochs, model: type[Any], number: int) -> list[str]:
    """Create red items by a new process, and return their ids."""
    items = world.process().collection(model)
    return [items.create(tenant="abc", id=world.id(), n=n, kind="red").id for n in range(number)]


def entries(world: Epochs, name: str) -> dict[str, str]:
    """Return where the entries of the index stand, by the sort keys of their items."""
    items = world.inner.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]
    return {item[SK]["S"]: item["GSI1PK"]["S"] for item in items if item["Type"]["S"] == name}


def places(entity: EntityDefinition[Any], ids: list[str], count: int) -> dict[str, str]:
    """Return where entries belong under a count."""
    index, found = entity.indexes["by_kind"], {}
    for each in ids:
        entry = index.entry({**RED, "id": each})
        assert entry is not None
        found[each] = index_home(index, entry, entity.key_of({"tenant": "abc", "id": each}), count)
    return found


def carried(world: Epochs, resharder: Resharder, scope: Scope) -> Iterator[str]:
    """Carry a resize out, and yield its stages."""
    for _ in range(60):
        yield resharder.status(scope).stage
        step = resharder.advance(scope.key)
        if step.kind == "done":
            return
        for task in step.tasks:
            resharder.work(scope.key, task, seconds=60.0)
        world.clock.now += step.seconds
    raise AssertionError(f"never ended: {resharder.status(scope)}")


def listed(world: Epochs, model: type[Any]) -> list[list[str]]:
    """Return the red items by the index in each order, sorted."""
    items = world.process().collection(model)
    return [sorted(item.id for item in items.items(RED, index="by_kind", order=order, limit=7)) for order in ORDERS]


@pytest.mark.parametrize("placement", list(MODELS))
def test_an_index_grows_for_new_entries_and_is_rewritten_later(world: Epochs, placement: str) -> None:
    model = MODELS[placement]
    entity, scope, resharder = definition(model), index_of(model), world.resharder(entities=list(MODELS.values()))
    old = written(world, model, 30)
    before = world.raw()

    resharder.start(scope, 16)
    stages = list(dict.fromkeys(carried(world, resharder, scope)))
    new = written(world, model, 20)

    assert set(stages) <= {"pending", "prepare", "stable"}
    assert before.items() <= world.raw().items()
    assert entries(world, entity.name) == places(entity, old, 2) | places(entity, new, 16)
    assert listed(world, model) == [sorted([*old, *new])] * 3
    resharder.start(scope, 16, rewrite=True)
    list(carried(world, resharder, scope))
    status = resharder.status(scope)
    assert (status.count, status.former, status.busy) == (16, [], False)
    assert entries(world, entity.name) == places(entity, [*old, *new], 16)
    assert listed(world, model) == [sorted([*old, *new])] * 3
    assert before.items() <= world.raw().items()


def test_an_index_and_the_partition_of_its_items_grow_at_the_same_time(world: Epochs) -> None:
    model, scope = Event, index_of(Event)
    resharder = world.resharder()
    old = written(world, model, 20)

    resharder.start(scope, 8)
    resharder.start(partition(), 16)
    while waits := [step.seconds for key in resharder.poll() if (step := resharder.advance(key)).kind != "done"]:
        world.clock.now += min(waits)
    world.clock.now += 1
    new = written(world, model, 30)

    assert world.counts() == [(1, "confirmed"), (16, "confirmed")]
    entity = definition(model)
    assert entries(world, entity.name) == places(entity, old, 2) | places(entity, new, 8)
    assert listed(world, model) == [sorted([*old, *new])] * 3
    found = world.process().collection(model)
    assert all(found.get(tenant="abc", id=each) for each in [*old, *new])


def test_an_index_waits_for_an_epoch_that_is_under_way(world: Epochs) -> None:
    resharder = world.resharder()
    resharder.start(partition(), 16)

    with pytest.raises(ReshardRefusedError) as refused:
        resharder.start(index_of(Event), 8)
    world.finish()

    assert refused.value.reason == "table_busy"
    assert resharder.start(index_of(Event), 8).target == 8
