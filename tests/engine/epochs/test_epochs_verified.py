"""`verify` knows the epoch of a key, and brings what stands outside its place home; `topology` shows the epochs."""

import pytest

from dynashard import Dynashard
from dynashard.schema import PK, SK
from dynashard_tools.topology.facts import facts, largest_count, partition_count
from dynashard_tools.verify import Declared, ReadPace, Report, Task, Verifier
from tests.engine.epochs.epochs_world import ENTITIES, Epochs, Event, partition

pytestmark = pytest.mark.engine

KEY = {"tenant": "abc"}


def verified(world: Epochs, db: Dynashard, *, mend: bool = False) -> Report:
    verifier = Verifier(db, world.topology, Declared(ENTITIES), clock=world.clock, pace=ReadPace())
    return verifier.run(Task(Event, KEY, mend=mend))


def test_items_of_every_epoch_are_at_home(world: Epochs) -> None:
    db = world.process()
    for count in (4, 2):
        world.write(db, 10)
        world.grow(count)
    world.clock.now += 1
    world.write(db, 10)

    assert dict(verified(world, world.process()).found) == {}


def test_an_item_outside_the_place_of_its_epoch_is_moved_home(world: Epochs) -> None:
    db = world.process()
    [early] = world.write(db)
    world.grow(16)
    world.clock.now += 1
    world.write(db, 5)
    request = {"TableName": world.table, "Key": {PK: {"S": f"{partition().key}:0"}, SK: {"S": early}}}
    item = world.inner.call("GetItem", request)["Item"]
    # As a process with a clock that is far off would have placed it.
    away = f"{partition().key}:15"
    world.inner.call("PutItem", {"TableName": world.table, "Item": {**item, PK: {"S": away}}})
    world.inner.call("DeleteItem", request)

    found = verified(world, world.process())
    lost = world.process().collection(Event).find(tenant="abc", id=early)
    repaired = verified(world, world.process(), mend=True)

    assert dict(found.found) == {"away": 1}
    assert lost is None
    assert (dict(repaired.mended), repaired.left) == ({"away": 1}, 0)
    assert world.process().collection(Event).get(tenant="abc", id=early)
    assert dict(verified(world, world.process()).found) == {}


def test_topology_shows_each_epoch_with_its_count_and_since_when(world: Epochs) -> None:
    world.grow(4)
    table, [entity] = world.resharder().topology, [partition().entity]

    [shown] = facts(table, [entity])
    count, own, _ = partition_count(table, entity, partition().partition or "")

    assert own
    assert [(each["count"], each["state"]) for each in count.as_dict()["epochs"]] == [
        (1, "confirmed"),
        (4, "confirmed"),
    ]
    assert count.epochs[0]["since"] is None
    assert count.epochs[1]["since"] <= world.clock.now
    assert shown.as_dict()["epochs"] == []
    assert largest_count(table, entity, partition().partition or "") == 4
