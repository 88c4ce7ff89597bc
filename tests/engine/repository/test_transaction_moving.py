"""Every step of a transaction in every phase of a resize, on every state of a key."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

from dynashard import Check, Create, Delete, Put, Step, Update
from dynashard.errors import InvalidQueryError, TransactionConflictError, TransactionRefusedError
from dynashard.testing.faults import Fault, afterwards, conflict, meanwhile, meanwhile_repeated
from dynashard.topology import Phase, View
from dynashard.transport import metered
from tests.engine.repository.moving_states import MARKS, STATES, after, build, helped, home_of
from tests.engine.repository.moving_states import states as complete_states
from tests.engine.repository.moving_things import IDENTITY, PHASES, RESIZES, Spot
from tests.engine.stored_things import Note, World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEY = {"tenant": "abc", "id": IDENTITY}
FELLOW = {"tenant": "abc", "id": "fellow"}
ALONG = Update(Note, FELLOW, add={"reads": 1}, missing="create")
"""The other step of each transaction."""


def note(text: str = "new") -> Note:
    return Note(tenant="abc", id=IDENTITY, text=text)


def states(spot: Spot) -> tuple[str, str]:
    """Return the items at both places. An item that an addition has created has no text."""
    for place in (spot.old, spot.new):
        item = spot.at(place)
        if item and "reads" in item and "text" not in item:
            spot.put(place, **{**{n: v for n, v in item.items() if n not in ("PK", "SK")}, "text": {"S": ""}})
    return complete_states(spot)


EXISTS, MISSING, MISMATCH = "already_exists", "not_found", "revision_mismatch"

# The step, what stands at the key's home afterwards (None: what stood there before), and why a live item or none
# refuses it.
STEPS: dict[str, tuple[Step, str | None, str, str]] = {
    "create": (Create(note()), "new", EXISTS, ""),
    "put": (Put(note()), "new", "", ""),
    "put if_match": (Put(note(), if_match="r0"), "new", "", MISMATCH),
    "put wrong if_match": (Put(note(), if_match="gone"), None, MISMATCH, MISMATCH),
    "update": (Update(Note, KEY, set={"text": "new"}), "new", "", MISSING),
    "update if_match": (Update(Note, KEY, set={"text": "new"}, if_match="r0"), "new", "", MISMATCH),
    "update after reading": (Update(Note, KEY, set={"text": "new"}, add={"stars": 1}), "new", "", MISSING),
    "add or make": (Update(Note, KEY, add={"reads": 2}, missing="create"), "added", "", ""),
    "add or make after reading": (Update(Note, KEY, add={"stars": 2}, missing="create"), "added", "", ""),
    "delete": (Delete(Note, KEY), "nothing", "", MISSING),
    "delete if_match": (Delete(Note, KEY, if_match="r0"), "nothing", "", MISMATCH),
    "delete wrong if_match": (Delete(Note, KEY, if_match="gone"), None, MISMATCH, MISMATCH),
    "delete what may be missing": (Delete(Note, KEY, missing="ignore"), "gone", "", ""),
    "delete a revision that may be missing": (Delete(Note, KEY, "gone", missing="ignore"), "gone", MISMATCH, ""),
    "check": (Check(Note, KEY, "r0"), None, "", MISMATCH),
    "check none": (Check(Note, KEY, None), None, EXISTS, ""),
}


def cases(world: World, phase: Phase) -> Iterator[tuple[str, Spot, tuple[str, str]]]:
    resizes = cycle(RESIZES.items())
    for state, (name, (count, target)) in zip(STATES[phase], resizes, strict=False):
        for item in world.raw():
            world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": item["PK"], "SK": item["SK"]})
        spot = Spot(world, count, target)
        build(spot, state)
        spot.enter(phase)
        yield f"{name}, {state[0]} at old and {state[1]} at new", spot, helped(phase, state)


def fitting(found: tuple[str, str], phase: Phase, state: tuple[str, str], wrote: str | None) -> bool:
    """Return whether the items at both places are those after the step."""
    where = home_of(phase, state)
    if wrote is None:
        return found == state
    if wrote == "gone":
        # No live item is there, and an expired one may or may not be removed.
        return found[1 - where] == state[1 - where] and found[where] in ("nothing", "expired")
    if wrote == "added":
        # The text is unchanged, and a created item has none.
        return found == after(phase, state, "live" if state[where] == "live" else "")
    return found == after(phase, state, wrote)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_follows_the_protocol_in_each_phase(world: World, name: str, phase: Phase) -> None:
    step, writes, to_live, to_none = STEPS[name]
    for case, spot, state in cases(world, phase):
        lives = state[home_of(phase, state)] == "live"
        reason = to_live if lives else to_none

        refusal = (1, "")
        try:
            world.transact(ALONG, step)
        except TransactionRefusedError as error:
            refusal = (error.step, error.reason)

        assert refusal == (1, reason), case
        assert fitting(states(spot), phase, state, None if reason else writes), (case, states(spot))
        fellow = world.notes.find(FELLOW, consistent=True)
        assert (fellow.reads if fellow else 0) == (0 if reason else 1), case


def test_steps_cost_what_the_protocol_says(world: World) -> None:
    spot = Spot(world, 4, 8)
    costs = {}
    for phase, state, name in (
        (Phase.STABLE, ("nothing", "nothing"), "create"),
        (Phase.PREPARE, ("nothing", "nothing"), "create"),
        (Phase.MOVE, ("nothing", "nothing"), "create"),
        (Phase.MOVE, ("live", "nothing"), "update"),
        (Phase.MOVE, ("live", "nothing"), "check"),
        (Phase.MOVE, ("nothing", "nothing"), "check none"),
        (Phase.SETTLE, ("mark", "live"), "update"),
        (Phase.SETTLE, ("nothing", "nothing"), "check none"),
    ):
        build(spot, state)
        spot.enter(phase)
        with metered() as meter:
            world.transact(STEPS[name][0])
        costs[phase, name] = (meter.consumed.requests, meter.consumed.write_units)

    assert costs == {
        (Phase.STABLE, "create"): (1, 2),
        (Phase.PREPARE, "create"): (1, 2),
        (Phase.MOVE, "create"): (1, 4),
        (Phase.MOVE, "update"): (1, 2),
        (Phase.MOVE, "check"): (1, 2),
        (Phase.MOVE, "check none"): (1, 2),
        (Phase.SETTLE, "update"): (1, 2),
        (Phase.SETTLE, "check none"): (1, 4),
    }


@pytest.fixture
def spot(world: World) -> Spot:
    """A note that goes from 4 to 8 shards, in the move phase."""
    spot = Spot(world, 4, 8)
    spot.enter(Phase.MOVE)
    return spot


FOLLOWING = [name for name, (_, _, to_live, _) in STEPS.items() if not to_live]


@pytest.mark.parametrize("name", FOLLOWING)
def test_step_follows_an_item_that_is_moved_just_before(world: World, spot: Spot, name: str) -> None:
    spot.put_live(spot.old)
    transport = world.faults(meanwhile("TransactWriteItems", spot.move))

    world.transact(ALONG, STEPS[name][0])

    old, new = states(spot)
    assert transport.sent("TransactWriteItems") == 2
    assert old in MARKS
    assert new == {"added": "live", "gone": "nothing", None: "live"}.get(STEPS[name][1], STEPS[name][1])
    assert world.notes.get(FELLOW).reads == 1


def test_a_check_for_absence_sees_an_item_created_at_the_new_home(world: World, spot: Spot) -> None:
    rival = world.of(Note)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.create(note())))

    with pytest.raises(TransactionRefusedError) as refused:
        world.transact(ALONG, Check(Note, KEY, None))

    assert (refused.value.step, refused.value.reason) == (1, EXISTS)
    assert states(spot) == ("bare mark", "new")


def test_a_check_for_absence_holds_for_an_item_moved_and_deleted(world: World, spot: Spot) -> None:
    spot.put_live(spot.old)
    rival = world.of(Note)

    def moved_and_deleted() -> None:
        spot.move()
        rival.delete(KEY)

    world.faults(meanwhile("TransactWriteItems", moved_and_deleted))

    world.transact(ALONG, Check(Note, KEY, None))

    assert world.notes.get(FELLOW).reads == 1


def test_two_steps_meet_two_moves(world: World, spot: Spot) -> None:
    other = Spot(world, 4, 8, identity="11")
    assert other.old != other.new
    for each in (spot, other):
        each.put_live(each.old)

    def move_both() -> None:
        spot.move()
        other.move()

    transport = world.faults(meanwhile("TransactWriteItems", move_both))

    world.transact(Update(Note, spot.key, add={"reads": 1}), Update(Note, other.key, add={"reads": 1}))

    assert transport.sent("TransactWriteItems") == 2
    assert [world.notes.get(each.key).reads for each in (spot, other)] == [1, 1]


@pytest.mark.parametrize("conflicts", [True, False], ids=["meets the mover", "sees the marker"])
def test_addition_is_done_once_though_its_item_moved_before_the_retry(
    world: World, spot: Spot, *, conflicts: bool
) -> None:
    spot.put_live(spot.old, reads={"N": "1"})

    def strike(send: Any, request: Any) -> Any:
        send(request)
        spot.move()
        if conflicts:
            return conflict("TransactWriteItems").strike(send, request)
        return send({**request, "ClientRequestToken": "forgotten"})

    world.faults(Fault("TransactWriteItems", strike))

    world.transact(Update(Note, KEY, add={"reads": 1}), ALONG)

    assert world.notes.get(KEY).reads == 2
    assert world.notes.get(FELLOW).reads == 1


def test_creation_that_was_sent_twice_and_moved_on_is_done_once(world: World, spot: Spot) -> None:
    rival = world.of(Note)
    # The first attempt finds out that the fellow has to be created, too.
    later = meanwhile_repeated("TransactWriteItems", lambda: rival.update(KEY, set={"text": "later"}), nth=2)
    sent = world.faults(later)

    world.transact(Create(note()), ALONG)

    assert sent.waiting == []
    assert states(spot) == ("bare mark", "later")
    assert world.notes.get(FELLOW).reads == 1


def test_an_outdated_view_is_refreshed(world: World) -> None:
    spot = Spot(world, 4, 8)
    build(spot, ("mark", "live"))
    spot.enter(Phase.PREPARE)
    world.views.fresh = spot.view(Phase.MOVE)

    world.transact(Update(Note, KEY, set={"text": "new"}), ALONG)

    assert states(spot) == ("mark", "new")
    assert set(world.views.refreshed) == {"test.v1.Note:abc"}
    assert world.notes.get(FELLOW).reads == 1


@pytest.mark.parametrize("name", ["create", "put", "update", "delete", "check", "check none", "add or make"])
def test_views_are_requested_before_each_attempt(world: World, name: str) -> None:
    """Phases advance between the attempts of one transaction, which conflicts delay."""
    spot = Spot(world, 4, 8)
    if name not in ("create", "check none"):
        spot.put_live(spot.old)
    views = [spot.view(Phase.PREPARE), spot.view(Phase.MOVE), spot.view(Phase.SETTLE), View(8)]
    world.views.now = views.pop(0)

    def strike(send: Any, request: Any) -> Any:
        if world.views.now is not None and world.views.now.phase is Phase.MOVE:
            spot.move()
        world.views.now = views.pop(0)
        return conflict("TransactWriteItems").strike(send, request)

    world.faults(*(Fault("TransactWriteItems", strike, nth=n) for n in (1, 2, 3)))

    world.transact(STEPS[name][0], ALONG)

    found = world.notes.find(KEY, consistent=True)
    texts = {"update": "new", "put": "new", "create": "new", "check": "was", "add or make": "was"}
    assert (found.text if found else None) == texts.get(name)
    assert world.notes.get(FELLOW).reads == 1


def test_an_item_that_keeps_moving_is_reported(world: World) -> None:
    spot = Spot(world, 4, 8)
    build(spot, ("mark", "live"))
    spot.enter(Phase.STABLE)

    with pytest.raises(TransactionConflictError):
        world.transact(Update(Note, KEY, set={"text": "new"}), ALONG)

    assert states(spot) == ("mark", "live")
    assert world.notes.find(FELLOW) is None


def test_the_limit_counts_stored_writes_and_not_steps(world: World, spot: Spot) -> None:
    assert spot.old != spot.new
    sent = world.faults()
    with pytest.raises(InvalidQueryError, match="stored writes of 80 steps"):
        world.transact(*(Create(Note(tenant="abc", id=f"n{number}")) for number in range(80)))
    assert sent.calls == []

    world.transact(*(Create(Note(tenant="abc", id=f"n{number}")) for number in range(50)))

    assert sum("text" in item for item in world.raw()) == 50


def test_a_delete_is_not_undone_by_the_mover(world: World, spot: Spot) -> None:
    spot.put_live(spot.old)
    world.faults(afterwards("TransactWriteItems", spot.move))

    world.transact(Delete(Note, KEY), ALONG)

    assert states(spot) == ("nothing", "nothing")
