"""Creates whose first attempt another release has begun, with members that this one does not know."""

import json
from collections.abc import Callable

import pytest

from dynashard.errors import OutcomeUnknownError
from dynashard.testing.faults import Fault, lost_answer, lost_request
from tests.engine.serving.idempotent_scene import KEY, NOTE, PERSON, InSteps, Scene
from tests.engine.stored_things import Person, World

pytestmark = pytest.mark.engine

NEWER = {"newer": {"S": "of a newer release"}}


@pytest.fixture
def scene(world: World, records: str) -> Scene:
    return Scene(world, records)


def extend(scene: Scene) -> None:
    """Give the one record a member and its planned item a field that only a newer release knows."""
    [record] = scene.kept()
    if "item_plan" in record:
        plan = json.loads(record["item_plan"]["S"])
        plan = {"order": [*plan["order"], "newer"], "added": {**plan["added"], "newer": 1}, "newer": 1}
        record["item_plan"]["S"] = json.dumps(plan)
    scene.world.inner.call("PutItem", {"TableName": scene.records, "Item": {**record, **NEWER}})


@pytest.mark.parametrize("lost", [lost_request, lost_answer])
def test_a_plan_with_a_field_of_a_newer_release_is_carried_out_without_it(
    scene: Scene, lost: Callable[..., Fault]
) -> None:
    world = scene.world
    world.faults(lost("PutItem", nth=2), lost_request("GetItem", nth=None))
    with pytest.raises(OutcomeUnknownError):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    world.faults()
    extend(scene)

    created, _ = scene.create(PERSON, model=Person, items=InSteps(world.store, Person))

    assert [item["id"]["S"] for item in scene.living()] == [created["id"]]
    [record] = scene.kept()
    assert (record["newer"], "answer" in record) == (NEWER["newer"], True)


def test_an_answer_that_another_release_kept_is_repeated(scene: Scene) -> None:
    first, _ = scene.create()
    extend(scene)

    assert scene.create() == (first, True)
    assert first["id"] == KEY["id"] == NOTE["id"]
