"""Creates in steps with an idempotency key, whose first attempt has stored the item without an answer."""

from collections.abc import Mapping
from typing import Any

import pytest

from dynashard.errors import AlreadyExistsError, OutcomeUnknownError, RequestInProgressError
from dynashard.testing.faults import Fault, Send, lost_answer, lost_request
from dynashard.transport.interface import Wire
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


def create(scene: Scene) -> tuple[dict[str, Any], bool]:
    return scene.create(PERSON, model=Person, items=InSteps(scene.world.store, Person))


def begin(scene: Scene) -> None:
    """Create without an answer, so that the record has a plan and no answer."""
    scene.world.faults(lost_answer("PutItem", nth=2), lost_request("GetItem", nth=None))
    with pytest.raises(OutcomeUnknownError):
        create(scene)
    scene.world.faults()


@pytest.mark.parametrize("lost", ["PutItem", "UpdateItem"])
def test_a_record_that_may_have_been_written_ends_the_attempt(scene: Scene, lost: str) -> None:
    if lost == "UpdateItem":
        begin(scene)
    before = scene.living()
    scene.attempts(lost_answer(lost))

    with pytest.raises(OutcomeUnknownError) as unknown:
        create(scene)

    assert unknown.value.retryable
    assert scene.living() == before


def test_of_two_attempts_that_take_a_record_over_one_waits(scene: Scene) -> None:
    begin(scene)
    answers = []

    def overtaken(send: Send, request: Mapping[str, Any]) -> Wire:
        answers.append(create(scene.without_faults()))
        return send(request)

    scene.attempts(Fault("UpdateItem", overtaken))

    with pytest.raises(RequestInProgressError):
        create(scene)

    [(created, _)] = answers
    assert [item["id"]["S"] for item in scene.living()] == [created["id"]]
    assert create(scene.without_faults()) == (created, True)
