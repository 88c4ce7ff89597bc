"""Two releases carry out one resize: members of its records that one of them does not know, or has not stored."""

from dataclasses import replace
from typing import Any

import pytest

from dynashard.errors import UndecodableItemError
from tests.engine.resharding.resharding_world import ABC, STAGES, TIMING, Moving, Thing, whole

pytestmark = pytest.mark.engine

NEWER = {"newer": {"S": "of a newer release"}}
CHANGING = STAGES[:-1]


def stored(world: Moving) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.inner.call("Scan", {"TableName": world.topology})["Items"]
    return items


def store(world: Moving, item: dict[str, Any]) -> None:
    world.inner.call("PutItem", {"TableName": world.topology, "Item": item})


def extend(world: Moving) -> None:
    """Give each record and each resize a member that only a newer release knows, as that release would."""
    for item in stored(world):
        resize = {"change": {"M": {**item["change"]["M"], **NEWER}}} if "M" in item.get("change", {}) else {}
        store(world, {**item, **resize, **NEWER})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scope", [ABC, whole(Thing)], ids=["one partition", "all partitions"])
@pytest.mark.parametrize("stage", CHANGING)
def test_a_resize_that_another_release_began_ends_and_keeps_its_members(world: Moving, scope: Any, stage: str) -> None:
    world.fill(Thing, 40)
    world.resharder.start(scope, 8)
    world.until(scope, stage)
    extend(world)

    status = world.finish(scope)

    assert (status.stage, status.count) == ("stable", 8)
    assert world.misplaced(Thing, 8) == []
    assert [item["partition"]["S"] for item in stored(world) if item.get("newer") != NEWER["newer"]] == []
    assert world.record(scope.key).resize["newer"] == "of a newer release"


def test_the_lease_and_an_abort_keep_the_members_of_another_release(world: Moving) -> None:
    world.resharder.start(ABC, 8)
    extend(world)

    world.resharder.pause(ABC)
    world.resharder.abort(ABC)
    world.finish(ABC, world.new(timing=replace(TIMING, lease=20.0)))

    assert world.record("move.v1.Thing").lease == 20.0
    assert all(item["newer"] == NEWER["newer"] for item in stored(world))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", CHANGING)
def test_members_that_an_older_release_has_not_stored_have_defaults(world: Moving, stage: str) -> None:
    world.fill(Thing, 40)
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    [item] = [each for each in stored(world) if each["partition"]["S"] == ABC.key]
    first = {name: item["change"]["M"][name] for name in ("id", "origin", "target", "tasks")}
    store(world, {**item, "change": {"M": first}})

    status = world.finish(ABC)

    assert (status.stage, status.count, status.cause) == ("stable", 8, "unknown")
    assert world.misplaced(Thing, 8) == []


def test_progress_of_a_pass_that_only_another_release_knows_is_begun_again(world: Moving) -> None:
    world.fill(Thing, 40)
    world.resharder.start(ABC, 8)
    world.until(ABC, "move")
    world.resharder.work(ABC.key, world.resharder.advance(ABC.key).tasks[0], seconds=1e9)
    for item in world.progress_items():
        store(world, {**item, "kind": {"S": "polish"}, "done": {"BOOL": True}})

    status = world.finish(ABC)

    assert (status.stage, status.count) == ("stable", 8)
    assert world.misplaced(Thing, 8) == []


def test_a_resize_that_lacks_what_every_release_stores_is_refused_by_name(world: Moving) -> None:
    world.resharder.start(ABC, 8)
    [item] = [each for each in stored(world) if each["partition"]["S"] == ABC.key]
    del item["change"]["M"]["tasks"]
    store(world, item)

    with pytest.raises(
        UndecodableItemError, match=f"topology record {ABC.key} cannot be read, because it has no tasks"
    ):
        world.resharder.advance(ABC.key)
