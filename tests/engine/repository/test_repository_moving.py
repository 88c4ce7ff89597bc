"""Every operation in every phase of a resize, on every state of a key between its two homes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynashard import Collection
from dynashard.errors import AlreadyExistsError, DynashardError, NotFoundError, RevisionMismatchError
from dynashard.topology import Phase
from dynashard.transport import metered
from tests.engine.repository.moving_states import STATES, after, build, helped, home_of, states
from tests.engine.repository.moving_things import IDENTITY, PHASES, RESIZES, Spot
from tests.engine.stored_things import Note, World, person

pytestmark = [pytest.mark.engine, pytest.mark.one_face]


def note(text: str = "new") -> Note:
    return Note(tenant="abc", id=IDENTITY, text=text)


KEY = {"tenant": "abc", "id": IDENTITY}
Operation = Callable[[Collection[Note]], Any]

# The operation, the item afterwards, and the results for a live and a missing item.
OPERATIONS: dict[str, tuple[Operation, str, Any, Any]] = {
    "create": (lambda notes: notes.create(note()).text, "new", AlreadyExistsError, "new"),
    "put": (lambda notes: notes.put(note()).created, "new", False, True),
    "replace": (lambda notes: notes.replace(note()).text, "new", "new", "new"),
    "put if_match": (lambda notes: notes.put(note(), if_match="r0").created, "new", False, RevisionMismatchError),
    "put wrong if_match": (lambda n: n.put(note(), if_match="gone"), "", RevisionMismatchError, RevisionMismatchError),
    "update": (lambda notes: notes.update(KEY, set={"text": "new"}).text, "new", "new", NotFoundError),
    "update add": (lambda n: n.update(KEY, set={"text": "new"}, add={"reads": 2}).reads, "new", 2, NotFoundError),
    "update after reading": (
        lambda notes: notes.update(KEY, set={"text": "new"}, add={"stars": 1}).stars,
        "new",
        1,
        NotFoundError,
    ),
    "update if_match": (
        lambda notes: notes.update(KEY, set={"text": "new"}, if_match="r0").text,
        "new",
        "new",
        RevisionMismatchError,
    ),
    "update wrong if_match": (
        lambda notes: notes.update(KEY, set={"text": "new"}, if_match="gone"),
        "",
        RevisionMismatchError,
        RevisionMismatchError,
    ),
    "delete": (lambda notes: notes.delete(KEY), "nothing", None, NotFoundError),
    "delete if_match": (lambda notes: notes.delete(KEY, if_match="r0"), "nothing", None, RevisionMismatchError),
    "delete wrong if_match": (
        lambda notes: notes.delete(KEY, if_match="gone"),
        "",
        RevisionMismatchError,
        RevisionMismatchError,
    ),
    "batch put": (lambda notes: notes.batch_write(put=[note()]), "new", None, None),
    "batch delete": (lambda notes: notes.batch_write(delete=[KEY]), "nothing", None, None),
    "get": (lambda notes: notes.get(KEY).revision, "", "r0", NotFoundError),
    "find consistently": (lambda notes: notes.find(KEY, consistent=True) is not None, "", True, False),
    "exists": (lambda notes: notes.exists(KEY), "", True, False),
    "batch get": (lambda notes: [i and i.revision for i in notes.batch_get([KEY])], "", ["r0"], [None]),
}


def cases(world: World, phase: Phase) -> Iterator[tuple[str, Spot, tuple[str, str]]]:
    for name, (count, target) in RESIZES.items():
        for state in STATES[phase]:
            spot = Spot(world, count, target)
            build(spot, state)
            spot.enter(phase)
            yield f"{name}, {state[0]} at old and {state[1]} at new", spot, helped(phase, state)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_follows_the_protocol_in_each_phase(world: World, operation: str, phase: Phase) -> None:
    act, writes, to_live, to_none = OPERATIONS[operation]
    for case, spot, state in cases(world, phase):
        lives = state[home_of(phase, state)] == "live"
        expected = to_live if lives else to_none
        refused = isinstance(expected, type) and issubclass(expected, DynashardError)

        try:
            answer = act(world.notes)
        except DynashardError as error:
            answer = type(error)

        assert answer == expected, case
        untouched = refused or not writes or (writes == "nothing" and not lives)
        found = states(spot)
        if untouched and operation.startswith("batch delete") and phase is Phase.STABLE:
            # A batch has no conditions in a stable phase, so that it also removes expired items.
            assert found == ("nothing", state[1]), case
        else:
            assert found == (state if untouched else after(phase, state, writes)), case


def test_items_in_a_stable_phase_cost_no_more(world: World) -> None:
    transport = world.faults()
    with metered() as meter:
        world.notes.create(note())
        world.notes.replace(note("again"))
        world.notes.update(KEY, add={"reads": 1})
        world.notes.get(KEY, consistent=True)
        world.notes.exists(KEY, consistent=True)
        world.notes.delete(KEY)
        world.notes.batch_write(put=[note()])
        world.notes.batch_get([KEY], consistent=True)

    assert [call.operation for call in transport.calls] == [
        "PutItem", "UpdateItem", "UpdateItem", "GetItem", "GetItem", "DeleteItem", "BatchGetItem",
        "BatchWriteItem", "BatchGetItem",
    ]  # fmt: skip
    assert (meter.consumed.write_units, meter.consumed.read_units) == (5, 4)
    assert world.views.refreshed == []


def test_operations_on_moving_keys_cost_what_the_protocol_says(world: World) -> None:
    spot = Spot(world, 4, 8)
    costs = {}
    for phase, state, operation in (
        (Phase.PREPARE, ("nothing", "nothing"), "create"),
        (Phase.MOVE, ("nothing", "nothing"), "create"),
        (Phase.MOVE, ("live", "nothing"), "put"),
        (Phase.MOVE, ("live", "nothing"), "update"),
        (Phase.MOVE, ("live", "nothing"), "delete"),
        (Phase.SETTLE, ("nothing", "nothing"), "create"),
        (Phase.SETTLE, ("mark", "live"), "put"),
        (Phase.SETTLE, ("mark", "live"), "update"),
        (Phase.SETTLE, ("mark", "live"), "delete"),
        (Phase.SETTLE, ("mark", "live"), "get"),
        (Phase.SETTLE, ("nothing", "nothing"), "exists"),
        (Phase.SETTLE, ("live", "nothing"), "batch get"),
    ):
        build(spot, state)
        spot.enter(phase)
        with metered() as meter:
            OPERATIONS[operation][0](world.notes)
        costs[phase, operation] = (meter.consumed.requests, meter.consumed.write_units)

    assert costs == {
        (Phase.PREPARE, "create"): (1, 1),
        (Phase.MOVE, "create"): (1, 4),
        (Phase.MOVE, "put"): (1, 1),
        (Phase.MOVE, "update"): (1, 1),
        (Phase.MOVE, "delete"): (1, 1),
        (Phase.SETTLE, "create"): (1, 4),
        (Phase.SETTLE, "put"): (1, 1),
        (Phase.SETTLE, "update"): (1, 1),
        (Phase.SETTLE, "delete"): (1, 1),
        (Phase.SETTLE, "get"): (1, 0),
        (Phase.SETTLE, "exists"): (2, 0),
        (Phase.SETTLE, "batch get"): (3, 4),
    }


@pytest.mark.parametrize("phase", PHASES)
def test_a_key_that_keeps_its_home_is_written_as_usual(world: World, phase: Phase) -> None:
    staying = Spot(world, 4, 8, identity="3")
    assert staying.old == staying.new
    staying.enter(phase)
    transport = world.faults()

    world.notes.create(Note(**staying.key))
    world.notes.put(Note(**staying.key, text="again"))
    world.notes.delete(staying.key)

    assert [call.operation for call in transport.calls] == ["PutItem", "UpdateItem", "DeleteItem"]


@pytest.mark.parametrize("consistent", [True, False])
def test_reads_of_moved_items_have_the_requested_consistency(world: World, *, consistent: bool) -> None:
    spot = Spot(world, 4, 8)
    build(spot, ("mark", "live"))
    spot.enter(Phase.MOVE)
    transport = world.faults()

    assert world.notes.find(KEY, consistent=consistent)
    world.notes.batch_get([KEY], consistent=consistent)

    asked = [call.request.get("RequestItems", {}).get(world.table, call.request) for call in transport.calls]
    assert [request.get("ConsistentRead", False) for request in asked] == [consistent] * 4


def test_checking_an_item_needs_no_view(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(world.views, "view", unreachable)
    monkeypatch.setattr(world.views, "index_view", unreachable)

    world.people.check(person())
