"""Writes that the database executes, or answers, long after the end of the view they were sent under."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynashard import Create, Dynashard, Update
from dynashard.errors import AlreadyExistsError, DynashardError, EngineUnavailableError, OutcomeUnknownError
from dynashard.repository.markers import relocation
from dynashard.testing.faults import conflict, lost_answer, lost_request, meanwhile, throttled
from dynashard.transport import Transport
from dynashard_tools.verify import Declared, Report, Verifier
from tests.engine.repository.late_world import (
    HOW,
    answered_late,
    client,
    judged,
    moving_ids,
    outcome,
    reach,
    things,
    without,
)
from tests.engine.resharding.mover_world import at
from tests.engine.resharding.resharding_world import ABC, ENTITIES, STAGES, Moving, Thing, moving_world

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

RESIZES = {"growing": 8, "shrinking": 2}


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


def verified(world: Moving) -> Report:
    return Verifier(client(world), world.topology, Declared(ENTITIES), clock=world.clock).run()


OPERATIONS: dict[str, tuple[str, Any]] = {
    "create": ("PutItem", lambda db, item: things(db).create(item)),
    "put": ("UpdateItem", lambda db, item: things(db).put(item)),
    "batch put": ("BatchWriteItem", lambda db, item: things(db).batch_write(put=[item])),
    "transaction": ("TransactWriteItems", lambda db, item: db.transact(Create(item))),
    "add or make": (
        "TransactWriteItems",
        lambda db, item: db.transact(
            Create(Thing(tenant="other", id=item.id)), Update(Thing, item, add={"rank": 1}, missing="create")
        ),
    ),
}


SCENES = [
    *((name, "prepare", "growing") for name in OPERATIONS if name != "batch put"),
    # Only items of stable partitions are written by BatchWriteItem.
    ("batch put", "", "growing"),
    ("create", "", "growing"),
    ("create", "prepare", "shrinking"),
]
"""The write, the stage of its view (none before the resize), and the resize."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("name", "begins", "resize"), SCENES, ids=[" ".join(scene) for scene in SCENES])
def test_an_acknowledged_create_is_found_however_late_it_is_executed_or_answered(
    world: Moving, name: str, how: str, begins: str, resize: str
) -> None:
    operation, act = OPERATIONS[name]
    to = RESIZES[resize]
    for identity, stage in zip(moving_ids(4, to, len(STAGES)), STAGES, strict=True):
        if stage in ("pending", "prepare"):
            continue
        if begins:
            world.resharder.start(ABC, to, survey=False)
            world.until(ABC, begins)

        def happens(stage: str = stage) -> None:
            if not begins:
                world.resharder.start(ABC, to, survey=False)
            reach(world, stage)

        writer = client(world, [HOW[how](operation, happens)])
        answer = outcome(lambda: act(writer, Thing(tenant="abc", id=identity)))  # noqa: B023 - called at once

        unknown = isinstance(answer, DynashardError)
        assert not unknown or isinstance(answer, EngineUnavailableError), (stage, answer)
        judged(world, identity, acknowledged=not unknown)
        world.finish(ABC)
        judged(world, identity, acknowledged=not unknown)
        assert (dict(verified(world).found), world.marks()) == ({}, []), stage
        world.resize(ABC, 4)
        judged(world, identity, acknowledged=not unknown)


@pytest.mark.parametrize("stage", ["move", "settle", "sweep", "stable"])
def test_a_late_create_without_rivals_has_a_known_outcome(world: Moving, stage: str) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    writer = client(world, [meanwhile("PutItem", lambda: reach(world, stage))])

    created = things(writer).create(Thing(tenant="abc", id=identity))

    found = things(client(world)).get({"tenant": "abc", "id": identity}, consistent=True)
    assert found.revision == created.revision


REFUSALS: dict[str, tuple[str, Any]] = {
    "update": ("UpdateItem", lambda db, item: things(db).update(item, set={"text": "new"})),
    "put on a revision": ("UpdateItem", lambda db, item: things(db).put(item, if_match=item.revision)),
    "delete": ("DeleteItem", lambda db, item: things(db).delete(item)),
    "transaction": ("TransactWriteItems", lambda db, item: db.transact(Update(Thing, item, set={"text": "new"}))),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("stage", ["sweep", "stable"])
def test_a_late_write_that_finds_nothing_at_the_old_home_is_not_refused(world: Moving, name: str, stage: str) -> None:
    [identity] = moving_ids(4, 8, 1)
    item = things(client(world)).create(Thing(tenant="abc", id=identity))
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    operation, act = REFUSALS[name]

    act(client(world, [meanwhile(operation, lambda: reach(world, stage))]), item)

    found = things(client(world)).find({"tenant": "abc", "id": identity}, consistent=True)
    assert (found is None) == (name == "delete")
    assert found is None or found.revision != item.revision


@pytest.mark.parametrize(("stage", "proved"), [("move", True), ("settle", True), ("sweep", False), ("stable", False)])
def test_a_delete_answered_late_is_acknowledged_while_the_old_home_still_decides(
    world: Moving, stage: str, *, proved: bool
) -> None:
    [identity] = moving_ids(4, 8, 1)
    item = things(client(world)).create(Thing(tenant="abc", id=identity))
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    writer = client(world, [answered_late("DeleteItem", lambda: reach(world, stage))])

    answer = outcome(lambda: things(writer).delete(item))

    # After the second pass the item could also have been moved before the request was executed.
    assert isinstance(answer, type(None) if proved else OutcomeUnknownError), answer


@pytest.mark.parametrize("stage", ["sweep", "stable"])
def test_a_late_create_whose_key_was_taken_meanwhile_is_refused(world: Moving, stage: str) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")

    def taken() -> None:
        reach(world, stage)
        things(client(world)).create(Thing(tenant="abc", id=identity, text="theirs"))
        world.finish(ABC)

    writer = client(world, [meanwhile("PutItem", taken)])
    with pytest.raises(AlreadyExistsError):
        things(writer).create(Thing(tenant="abc", id=identity, text="mine"))

    judged(world, identity, acknowledged=True)
    assert things(client(world)).get({"tenant": "abc", "id": identity}).text == "theirs"
    assert verified(world).total == 0


@pytest.mark.parametrize("stage", ["sweep", "stable"])
def test_a_late_put_of_a_batch_whose_key_was_taken_meanwhile_is_sent_again(world: Moving, stage: str) -> None:
    [identity] = moving_ids(4, 8, 1)

    def taken() -> None:
        world.resharder.start(ABC, 8, survey=False)
        reach(world, stage)
        things(client(world)).create(Thing(tenant="abc", id=identity, text="theirs"))
        world.finish(ABC)

    db = client(world, [meanwhile("BatchWriteItem", taken)])
    things(db).batch_write(put=[Thing(tenant="abc", id=identity, text="mine")])

    judged(world, identity, acknowledged=True)
    assert things(client(world)).get({"tenant": "abc", "id": identity}).text == "mine"
    assert verified(world).total == 0


def test_a_valid_view_adds_no_cost(world: Moving) -> None:
    db = client(world)
    things(db).create(Thing(tenant="abc", id="a"))
    world.clock.now += 29.0

    things(db).put(Thing(tenant="abc", id="a"))

    transport: Any = db.store.transport
    assert [call.operation for call in transport.calls] == ["PutItem", "UpdateItem"]


# Other writers use an item that was stored late, after its writer gave up.


def given_up(world: Moving, identity: str, stage: str) -> None:
    """Send a create in PREPARE that is executed at the end of a stage and never answered."""
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")

    def lose() -> None:
        reach(world, stage)

    writer = client(world, [meanwhile("PutItem", lose)])
    wire: Any = writer.store.transport
    send = wire.call

    def never_answered(operation: str, request: Any, **more: Any) -> Any:
        answer = send(operation, request, **more)
        if operation == "PutItem":
            raise EngineUnavailableError("No answer came.", operation=operation)
        return answer

    wire.call = never_answered
    answer = outcome(lambda: things(writer).create(Thing(tenant="abc", id=identity)))
    assert isinstance(answer, EngineUnavailableError)


def seen_and_changed(world: Moving, identity: str) -> None:
    """Change the item successfully by a client in MOVE."""
    key = {"tenant": "abc", "id": identity}
    assert things(client(world)).update(key, set={"text": "changed"}).text == "changed"


def story(world: Moving, db: Dynashard | None = None) -> None:
    """A late item that is changed in MOVE is found from then on in every phase and listing."""
    [identity] = moving_ids(4, 8, 1)
    key = {"tenant": "abc", "id": identity}
    given_up(world, identity, "move")
    seen_and_changed(world, identity)
    for stage in STAGES[2:]:
        if stage == "stable":
            world.finish(ABC)
        else:
            world.until(ABC, stage)
        assert things(db or client(world)).get(key, consistent=True).text == "changed", stage
        listed = [item.id for item in things(client(world)).list({"tenant": "abc"}, consistent=True).items]
        assert listed == [identity], stage
    assert (verified(world).total, world.misplaced(Thing, 8), world.marks()) == (0, [], [])


def test_a_late_write_that_was_seen_stays(world: Moving) -> None:
    story(world)


def unread(world: Moving) -> None:
    """As `story`, but without a read in SETTLE."""
    [identity] = moving_ids(4, 8, 1)
    given_up(world, identity, "move")
    seen_and_changed(world, identity)
    world.until(ABC, "sweep")
    assert things(client(world)).get({"tenant": "abc", "id": identity}, consistent=True).text == "changed"


def test_a_late_write_that_was_seen_stays_without_a_read_in_settle(world: Moving) -> None:
    unread(world)


def settled_write(world: Moving) -> None:
    """As `story`, with a writer in SETTLE."""
    [identity] = moving_ids(4, 8, 1)
    given_up(world, identity, "move")
    seen_and_changed(world, identity)
    world.until(ABC, "settle")
    answer = outcome(lambda: things(client(world)).create(Thing(tenant="abc", id=identity, text="second")))
    assert isinstance(answer, AlreadyExistsError), answer


def test_a_create_in_settle_is_refused_by_a_late_item(world: Moving) -> None:
    settled_write(world)


def alone(world: Moving) -> None:
    """A late create succeeds after the end of the resize."""
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    writer = client(world, [meanwhile("PutItem", lambda: reach(world, "stable"))])
    things(writer).create(Thing(tenant="abc", id=identity))
    judged(world, identity, acknowledged=True)


def together(world: Moving) -> None:
    """As `alone`, in a transaction."""
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    writer = client(world, [meanwhile("TransactWriteItems", lambda: reach(world, "stable"))])
    writer.transact(Create(Thing(tenant="abc", id=identity)))
    judged(world, identity, acknowledged=True)


@pytest.mark.parametrize(
    ("rule", "scene"),
    [("A", alone), ("A", together), ("H", story), ("H", settled_write), ("P", unread)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_scenario_fails_without_any_one_of_the_rules(world: Moving, rule: str, scene: Any) -> None:
    with without(rule), pytest.raises((AssertionError, DynashardError)):
        scene(world)


@pytest.mark.parametrize("scene", [alone, together, story, settled_write, unread])
def test_a_scenario_holds_with_all_of_the_rules(world: Moving, scene: Any) -> None:
    scene(world)


@pytest.mark.parametrize("fault", [lost_request, lost_answer, conflict], ids=lambda fault: fault.__name__)
def test_moving_late_items_home_survives_any_single_fault(world: Moving, fault: Any) -> None:
    [identity] = moving_ids(4, 8, 1)
    given_up(world, identity, "move")
    seen_and_changed(world, identity)
    world.until(ABC, "settle")
    faulty = client(world, [fault("TransactWriteItems", nth=1)])

    assert things(faulty).get({"tenant": "abc", "id": identity}, consistent=True).text == "changed"
    judged(world, identity, acknowledged=True)


@pytest.mark.parametrize("operation", ["PutItem", "TransactWriteItems"])
def test_a_late_success_that_cannot_be_verified_is_unknown(world: Moving, operation: str) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    writer = client(world, [meanwhile(operation, lambda: reach(world, "settle")), throttled("GetItem", nth=None)])
    item = Thing(tenant="abc", id=identity)

    answer = outcome(lambda: things(writer).create(item) if operation == "PutItem" else writer.transact(Create(item)))

    assert isinstance(answer, OutcomeUnknownError), answer


@pytest.mark.parametrize("visible", ["whole", "half"])
def test_a_late_create_that_the_sweep_moves_is_acknowledged_when_its_move_is_visible(
    world: Moving, visible: str
) -> None:
    [identity] = moving_ids(4, 8, 1)
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "prepare")
    parts: list[Any] = []

    def moved_by_the_sweep() -> None:
        [item] = [each for each in world.raw() if each["SK"]["S"] == identity]
        parts.extend(relocation(world.table, item, at(identity, 8), origin=4, target=8, now=world.clock.now))
        show(2 if visible == "whole" else 1)

    def show(count: int) -> None:
        if shown := [parts.pop(0) for _ in range(count)]:
            world.inner.call("TransactWriteItems", {"TransactItems": shown})

    # A transaction that reads parts of another one conflicts until all of them are visible.
    conflicts = [conflict("TransactGetItems", nth=None)] if visible == "half" else []
    late = meanwhile("PutItem", lambda: world.until(ABC, "sweep"))
    writer = client(world, [late, meanwhile("GetItem", moved_by_the_sweep), *conflicts])

    answer = outcome(lambda: things(writer).create(Thing(tenant="abc", id=identity)))

    assert isinstance(answer, Thing if visible == "whole" else OutcomeUnknownError), answer
    show(len(parts))
    judged(world, identity, acknowledged=True)
