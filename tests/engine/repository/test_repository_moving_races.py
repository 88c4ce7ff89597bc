"""Writes of moving keys among movers, other writers, new phases, lost answers and conflicts."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import (
    AlreadyExistsError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    TransactionConflictError,
    UnprocessedError,
)
from dynashard.testing.faults import (
    Fault,
    conflict,
    meanwhile,
    meanwhile_repeated,
    repeated,
)
from dynashard.topology import Phase, View
from tests.engine.repository.moving_things import IDENTITY, Spot
from tests.engine.stored_things import Note, World

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEY = {"tenant": "abc", "id": IDENTITY}
PARTITION = "test.v1.Note:abc"


def note(text: str = "new") -> Note:
    return Note(tenant="abc", id=IDENTITY, text=text)


@pytest.fixture
def spot(world: World) -> Spot:
    """A note that goes from 4 to 8 shards, in the move phase."""
    spot = Spot(world, 4, 8)
    spot.enter(Phase.MOVE)
    return spot


WRITES: dict[str, tuple[str, Callable[[World], Any]]] = {
    "put": ("UpdateItem", lambda world: world.notes.put(note())),
    "put if_match": ("UpdateItem", lambda world: world.notes.put(note(), if_match="r0")),
    "update": ("UpdateItem", lambda world: world.notes.update(KEY, set={"text": "new"})),
    "update if_match": ("UpdateItem", lambda world: world.notes.update(KEY, set={"text": "new"}, if_match="r0")),
    "update after reading": (
        "UpdateItem",
        lambda world: world.notes.update(KEY, set={"text": "new"}, add={"stars": 1}),
    ),
    "batch put": ("UpdateItem", lambda world: world.notes.batch_write(put=[note()])),
}
WRITING = pytest.mark.parametrize(("request_", "write"), WRITES.values(), ids=WRITES)


@WRITING
def test_item_that_is_moved_just_before_a_write_is_written_at_its_new_home(
    world: World, spot: Spot, request_: str, write: Callable[[World], Any]
) -> None:
    spot.put_live(spot.old)
    transport = world.faults(meanwhile(request_, spot.move))

    write(world)

    new = spot.at(spot.new) or {}
    assert transport.waiting == []
    assert transport.sent(request_) == 2
    assert (new["text"]["S"], "MovedFrom" in new, "MovedTo" in (spot.at(spot.old) or {})) == ("new", False, True)
    assert world.pauses == []


@WRITING
def test_write_whose_answer_was_lost_recognises_itself_in_the_mark(
    world: World, spot: Spot, request_: str, write: Callable[[World], Any]
) -> None:
    spot.put_live(spot.old)
    world.faults(meanwhile_repeated(request_, spot.move))

    write(world)

    old, new = spot.at(spot.old) or {}, spot.at(spot.new) or {}
    assert (old["Rev"], new["text"]["S"], new["MovedFrom"]) == (new["Rev"], "new", {"N": "4"})


def test_addition_is_applied_once_though_the_item_was_moved_before_the_retry(world: World, spot: Spot) -> None:
    spot.put_live(spot.old, reads={"N": "1"})
    transport = world.faults(meanwhile_repeated("UpdateItem", spot.move))

    updated = world.notes.update(KEY, add={"reads": 1})

    assert (updated.reads, transport.sent("UpdateItem")) == (2, 1)
    assert world.notes.get(KEY).reads == 2


def test_addition_whose_answer_was_lost_is_found_at_the_new_home(world: World, spot: Spot) -> None:
    spot.put_live(spot.old, reads={"N": "1"})
    world.faults(meanwhile_repeated("UpdateItem", spot.move))

    assert world.notes.update(KEY, add={"reads": 1}).reads == 2
    assert world.notes.get(KEY).reads == 2


def test_addition_at_the_new_home_is_applied_once(world: World, spot: Spot) -> None:
    spot.put_live(spot.old, reads={"N": "1"})
    spot.move()
    transport = world.faults(repeated("UpdateItem", nth=2))

    assert world.notes.update(KEY, add={"reads": 1}).reads == 2
    assert transport.waiting == []
    assert world.notes.get(KEY).reads == 2


def test_delete_follows_an_item_that_is_moved_just_before(world: World, spot: Spot) -> None:
    spot.put_live(spot.old)
    world.faults(meanwhile("DeleteItem", spot.move))

    world.notes.delete(KEY)

    assert spot.at(spot.new) is None
    assert "MovedTo" in (spot.at(spot.old) or {})
    assert world.notes.find(KEY) is None
    with pytest.raises(NotFoundError):
        world.notes.delete(KEY)


@pytest.mark.parametrize("at", ["old", "new"])
def test_delete_whose_answer_was_lost_is_unknown(world: World, spot: Spot, at: str) -> None:
    spot.put_live(spot.old)
    if at == "new":
        spot.move()
    transport = world.faults(repeated("DeleteItem", nth=1 if at == "old" else 2))

    with pytest.raises(OutcomeUnknownError):
        world.notes.delete(KEY)

    assert transport.waiting == []
    assert world.notes.find(KEY) is None


def test_revision_is_the_same_before_and_after_a_move(world: World, spot: Spot) -> None:
    revision = world.notes.create(note()).revision
    spot.clear(spot.new)
    spot.put_live(spot.old, rev=str(revision))
    before = world.notes.get(KEY)

    spot.move()

    assert world.notes.get(KEY).revision == before.revision == revision
    assert world.notes.put(note("newer"), if_match=revision).created is False


@pytest.mark.parametrize("phase", [Phase.MOVE, Phase.SETTLE])
@pytest.mark.parametrize("token", [True, False], ids=["by token", "by revision"])
def test_create_whose_answer_was_lost_recognises_itself(world: World, spot: Spot, phase: Phase, *, token: bool) -> None:
    spot.enter(phase)
    seen = []

    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        seen.append(request["ClientRequestToken"])
        again = request if token else {**request, "ClientRequestToken": "another"}
        send(request)
        return send(again)

    world.faults(Fault("TransactWriteItems", strike, nth=None))

    created = world.notes.create(note())
    with pytest.raises(AlreadyExistsError):
        world.notes.create(note("other"))

    assert created.revision == (spot.at(spot.new) or {})["Rev"]["S"]
    assert len(set(seen)) == 2


@pytest.mark.parametrize("phase", [Phase.MOVE, Phase.SETTLE])
def test_create_that_loses_a_race_is_refused(world: World, spot: Spot, phase: Phase) -> None:
    spot.enter(phase)
    other = world.notes
    world.faults(meanwhile("TransactWriteItems", lambda: other.create(note("other"))))

    with pytest.raises(AlreadyExistsError):
        world.notes.create(note())

    assert world.notes.get(KEY).text == "other"


@pytest.mark.parametrize("phase", [Phase.MOVE, Phase.SETTLE])
def test_a_put_overwrites_a_concurrent_create(world: World, spot: Spot, phase: Phase) -> None:
    spot.enter(phase)
    other = world.notes
    transport = world.faults(meanwhile("TransactWriteItems", lambda: other.create(note("other"))))

    written = world.notes.put(note())

    assert transport.waiting == []
    assert (written.created, world.notes.get(KEY).text) == (False, "new")


def test_a_create_is_refused_after_that_of_a_writer_one_phase_behind(world: World, spot: Spot) -> None:
    behind = world.notes

    def create_in_prepare() -> None:
        spot.enter(Phase.PREPARE)
        behind.create(note("other"))
        spot.enter(Phase.MOVE)

    world.faults(meanwhile("TransactWriteItems", create_in_prepare))

    with pytest.raises(AlreadyExistsError):
        world.notes.create(note())

    assert world.notes.get(KEY).text == "other"


def test_put_looks_again_where_a_rival_one_phase_behind_has_created(world: World, spot: Spot) -> None:
    behind = world.notes

    def create_in_prepare() -> None:
        spot.enter(Phase.PREPARE)
        behind.create(note("other"))
        spot.enter(Phase.MOVE)

    transport = world.faults(meanwhile("TransactWriteItems", create_in_prepare))

    assert world.notes.put(note()).created is False
    assert [call.operation for call in transport.calls] == ["UpdateItem", "TransactWriteItems", "UpdateItem"]
    assert (spot.at(spot.old) or {})["text"]["S"] == "new"
    assert spot.at(spot.new) is None


def test_create_recognises_its_own_work_of_an_earlier_phase(world: World, spot: Spot) -> None:
    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        send(request)
        spot.enter(Phase.MOVE)
        return conflict("PutItem").strike(send, request)

    spot.enter(Phase.PREPARE)
    world.faults(Fault("PutItem", strike))

    created = world.notes.create(note())

    assert created.revision == (spot.at(spot.old) or {})["Rev"]["S"]


def test_write_starts_again_when_the_phase_changes_between_its_steps(world: World, spot: Spot) -> None:
    spot.put(spot.old, ExpiresAt={"N": "1"}, text={"S": "gone"})

    def strike(send: Callable[[Any], Any], request: Any) -> Any:
        try:
            return send(request)
        finally:
            spot.enter(Phase.SETTLE)

    transport = world.faults(Fault("UpdateItem", strike))

    assert world.notes.put(note()).created is True
    places = [call.request["Key"]["PK"]["S"] for call in transport.calls if call.operation == "UpdateItem"]
    assert places == [spot.old, spot.new]
    assert (spot.at(spot.old) or {})["text"]["S"] == "gone", "settling marks what stands there and keeps it"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fresh", [Phase.MOVE, Phase.SETTLE, Phase.STABLE])
@pytest.mark.parametrize("write", [write for _, write in WRITES.values()][:5], ids=list(WRITES)[:5])
def test_a_marker_under_a_stable_view_shows_that_the_view_is_outdated(
    world: World, spot: Spot, fresh: Phase, write: Callable[[World], Any]
) -> None:
    spot.put_live(spot.old)
    spot.move()
    world.views.now = View(4)
    world.views.fresh = View(8) if fresh is Phase.STABLE else spot.view(fresh)
    write(world)

    assert world.views.refreshed == [PARTITION]
    assert (spot.at(spot.new) or {})["text"]["S"] == "new"
    assert len(world.pauses) == 1


OUTDATED: dict[str, Callable[[World], Any]] = {
    "create": lambda world: world.notes.create(note()),
    "put": lambda world: world.notes.put(note()),
    "update": lambda world: world.notes.update(KEY, set={"text": "new"}),
    "delete": lambda world: world.notes.delete(KEY),
}


@pytest.mark.parametrize("phase", [Phase.STABLE, Phase.PREPARE])
@pytest.mark.parametrize("write", OUTDATED.values(), ids=OUTDATED)
def test_a_write_gives_up_on_a_marker_that_no_view_explains(
    world: World, spot: Spot, phase: Phase, write: Callable[[World], Any]
) -> None:
    spot.put_mark()
    spot.enter(phase)

    with pytest.raises(TransactionConflictError, match="was being moved or written by others all the time") as refused:
        write(world)

    assert refused.value.retryable
    assert set(world.views.refreshed) == {PARTITION}
    assert 15 < sum(world.pauses) <= 20


def test_a_marker_with_another_target_shows_that_the_view_is_outdated(world: World, spot: Spot) -> None:
    spot.put(spot.old, MovedTo={"N": "1"})
    elsewhere = Spot(world, 4, 1)
    world.views.fresh = elsewhere.view(Phase.MOVE)

    world.notes.create(note())

    assert world.views.refreshed == [PARTITION]
    assert (spot.at(elsewhere.new) or {})["text"]["S"] == "new"
    assert spot.at(spot.new) is None


CONFLICTS: dict[str, tuple[str, Phase, Callable[[World], Any]]] = {
    "create": ("TransactWriteItems", Phase.MOVE, lambda world: world.notes.create(note())),
    "put": ("UpdateItem", Phase.MOVE, lambda world: world.notes.put(note())),
    "create while stable": ("PutItem", Phase.STABLE, lambda world: world.notes.create(note())),
    "batch while stable": ("BatchWriteItem", Phase.STABLE, lambda world: world.notes.batch_write(put=[note()])),
    "batch": ("TransactWriteItems", Phase.SETTLE, lambda world: world.notes.batch_write(put=[note()])),
}
CONFLICTING = pytest.mark.parametrize(("request_", "phase", "write"), CONFLICTS.values(), ids=CONFLICTS)


@CONFLICTING
def test_conflicting_write_waits_and_starts_again(
    world: World, spot: Spot, request_: str, phase: Phase, write: Callable[[World], Any]
) -> None:
    spot.enter(phase)
    transport = world.faults(conflict(request_, nth=1), conflict(request_, nth=2))

    write(world)

    assert transport.waiting == []
    assert world.notes.get(KEY).text == "new"
    assert world.pauses == [0.025, 0.05]


@CONFLICTING
def test_a_lasting_conflict_raises_a_retryable_error(
    world: World, spot: Spot, request_: str, phase: Phase, write: Callable[[World], Any]
) -> None:
    spot.enter(phase)
    world.faults(conflict(request_, nth=None))

    with pytest.raises((TransactionConflictError, UnprocessedError)) as refused:
        write(world)

    assert refused.value.retryable
    assert world.throttles == []
    assert world.notes.find(KEY) is None


def test_adopted_items_are_written_at_their_present_place(world: World) -> None:
    spot = Spot(world, 0, 4)
    bare = {"tenant": {"S": "abc"}, "id": {"S": IDENTITY}, "text": {"S": "old"}, "legacy": {"S": "kept"}}
    spot.put(spot.old, **bare)
    spot.enter(Phase.MOVE)

    assert world.notes.update(KEY, add={"reads": 1}).text == "old"
    spot.put(spot.old, **bare)
    spot.move()
    assert world.notes.get(KEY).revision == ""
    assert world.notes.update(KEY, set={"text": "new"}, add={"stars": 2}).stars == 2
    assert (spot.at(spot.new) or {})["legacy"] == {"S": "kept"}
    with pytest.raises(RevisionMismatchError):
        world.notes.delete(KEY, if_match="r0")
    world.notes.delete(KEY)

    assert world.notes.find(KEY) is None
