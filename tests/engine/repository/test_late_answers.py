"""Writes that are executed at once and answered after their view has ended: what is found decides their outcome."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynashard import Collection, Create
from dynashard.errors import OutcomeUnknownError
from dynashard.testing.faults import meanwhile
from dynashard.transport import Transport
from tests.engine.repository.late_world import answered_late, client, judged, moving_ids, outcome, reach, things
from tests.engine.resharding.mover_world import at
from tests.engine.resharding.resharding_world import ABC, Moving, Thing, moving_world

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

WRITES: dict[str, Any] = {
    "PutItem": lambda them: them.create(Thing(tenant="abc", id="new")),
    "UpdateItem": lambda them: them.put(Thing(tenant="abc", id="old", text="put")),
    "DeleteItem": lambda them: them.delete({"tenant": "abc", "id": "old"}),
}


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


def writing(world: Moving, operation: str, stage: str) -> Collection[Thing]:
    """Return a writer in PREPARE whose request is answered at the end of a stage."""
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    return things(client(world, [answered_late(operation, lambda: reach(world, stage))]))


@pytest.mark.parametrize("operation", WRITES)
def test_a_write_whose_home_is_the_same_is_acknowledged_without_a_read(world: Moving, operation: str) -> None:
    things(client(world)).create(Thing(tenant="abc", id="old"))

    def lease_ends() -> None:
        world.clock.now += 100.0

    db = client(world, [answered_late(operation, lease_ends)])

    assert not isinstance(outcome(lambda: WRITES[operation](things(db))), Exception)
    transport: Any = db.store.transport
    assert [call.operation for call in transport.calls] == [operation]


def test_an_item_stays_at_its_old_home_while_a_resize_is_only_prepared(world: Moving) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")

    def lease_ends() -> None:
        world.clock.now += 31.0

    things(client(world, [answered_late("PutItem", lease_ends)])).create(Thing(tenant="abc", id=identity))

    assert [item["PK"]["S"] for item in world.raw()] == [at(identity, 4)]


@pytest.mark.parametrize("stage", ["move", "settle", "sweep", "stable"])
def test_an_update_that_the_mover_carried_on_is_acknowledged(world: Moving, stage: str) -> None:
    [identity] = moving_ids(4, 8, 1)
    item = things(client(world)).create(Thing(tenant="abc", id=identity))

    writing(world, "UpdateItem", stage).put(item.model_copy(update={"text": "mine"}), if_match=item.revision)

    assert things(client(world)).get(item, consistent=True).text == "mine"


@pytest.mark.parametrize("stage", ["sweep", "stable"])
def test_a_create_that_others_have_deleted_and_swept_since_is_unknown(world: Moving, stage: str) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")

    def deleted() -> None:
        reach(world, stage)
        things(client(world)).delete({"tenant": "abc", "id": identity})
        world.finish(ABC)

    writer = things(client(world, [answered_late("PutItem", deleted)]))

    assert isinstance(outcome(lambda: writer.create(Thing(tenant="abc", id=identity))), OutcomeUnknownError)
    judged(world, identity, acknowledged=False)


def test_a_create_whose_item_a_marker_without_its_revision_has_replaced_is_unknown(world: Moving) -> None:
    """Such a marker replaces a late item whose unique value was reserved for another one meanwhile."""
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    marker = {"PK": {"S": at(identity, 4)}, "SK": {"S": identity}, "MovedTo": {"N": "8"}}

    def removed() -> None:
        world.inner.call("PutItem", {"TableName": world.table, "Item": marker})

    late = meanwhile("PutItem", lambda: reach(world, "settle"))
    writer = things(client(world, [late, meanwhile("GetItem", removed)]))

    assert isinstance(outcome(lambda: writer.create(Thing(tenant="abc", id=identity))), OutcomeUnknownError)
    judged(world, identity, acknowledged=False)


def test_a_transaction_of_one_step_that_others_have_undone_since_names_its_item(world: Moving) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")

    def deleted() -> None:
        reach(world, "stable")
        things(client(world)).delete({"tenant": "abc", "id": identity})
        world.finish(ABC)

    db = client(world, [answered_late("TransactWriteItems", deleted)])

    with pytest.raises(OutcomeUnknownError) as unknown:
        db.transact(Create(Thing(tenant="abc", id=identity)))

    assert unknown.value.key == {"tenant": "abc", "id": identity}
    assert unknown.value.revision


def test_a_create_that_is_certain_is_confirmed_although_others_have_deleted_it_since(world: Moving) -> None:
    [identity] = moving_ids(4, 8, 1)
    item = things(client(world)).create(Thing(tenant="abc", id=identity))
    world.resize(ABC, 8)
    things(client(world)).delete(item)

    assert things(client(world)).confirm_created(item, str(item.revision), 4)
