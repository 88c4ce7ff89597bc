"""Creates in steps with an idempotency key, whose first attempt has stored the item without an answer."""

import pytest

from dynashard.errors import AlreadyExistsError, OutcomeUnknownError
from dynashard.testing.faults import lost_answer, lost_request
from tests.engine.serving.idempotent_scene import PERSON, InSteps, Scene
from tests.engine.stored_things import Event, Person, World

pytestmark = pytest.mark.engine


@pytest.fixture
def scene(world: World, records: str) -> Scene:
    return Scene(world, records)


def test_an_item_that_was_changed_before_the_repeat_is_not_created_anew(scene: Scene) -> None:
    world = scene.world
    world.faults(lost_answer("PutItem", nth=2), lost_request("GetItem", nth=None))
    with pytest.raises(OutcomeUnknownError):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    world.faults()
    [row] = scene.living()
    world.people.update({"tenant": "abc", "id": row["id"]["S"]}, set={"visits": 4})

    for _ in range(3):
        with pytest.raises(AlreadyExistsError):
            scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
        assert [item["id"] for item in scene.living()] == [row["id"]]

    world.people.update({"tenant": "abc", "id": row["id"]["S"]}, set={"visits": 0})
    created, _ = scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    assert created["id"] == row["id"]["S"]


def test_a_repeat_stores_no_second_item_in_another_shard(scene: Scene) -> None:
    world, draws = scene.world, iter([0.0, 0.9])
    world.drawn = lambda: next(draws)
    body = {"tenant": "abc", "id": "1"}
    world.faults(lost_answer("PutItem", nth=2), lost_request("BatchGetItem", nth=None))
    with pytest.raises(OutcomeUnknownError):
        scene.create(body, model=Event)
    [row] = scene.living()
    world.faults()

    created, _ = scene.create(body, model=Event)

    assert scene.living() == [row]
    assert created["revision"] == row["Rev"]["S"]
    assert scene.create(body, model=Event) == (created, True)
