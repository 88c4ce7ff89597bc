"""Items with unique values that were stored late: they move home only while their values are reserved for them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from dynashard import Dynashard, Entity, Key, Registry, Shards, Update, definition
from dynashard.entity.uniqueness import reserved_for
from dynashard.errors import AlreadyExistsError, NotUniqueError, OutcomeUnknownError
from dynashard.repository.reservations import reservation
from dynashard.resharding import Resharder
from dynashard.resharding.status import stage_of
from dynashard.schema import PK, SK
from dynashard.testing.faults import Fault, Send, lost_after, lost_request
from dynashard.transport.interface import Wire
from dynashard_tools.verify import Declared, Kind, Task, Verifier
from tests.engine.repository.late_world import client, outcome
from tests.engine.resharding.mover_world import strays
from tests.engine.resharding.resharding_world import Moving, partition

pytestmark = pytest.mark.engine

OPERATION = "TransactWriteItems"


class Login(
    Entity,
    name="move.v1.Login",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    expires="until",
    unique=("mail",),
    registry=Registry(),
):
    tenant: str = "abc"
    id: str
    mail: str | None = None
    visits: int = 0
    until: datetime | None = None


ABC = partition(Login)
MOVES, MOVES_TOO = (item[SK]["S"] for item in strays(Login, 4, 8, 2))
STAYS = next(name for name in "abcdefgh" if name not in {row[SK]["S"] for row in strays(Login, 4, 8)})


def login(identity: str, mail: str | None = "ada@x.org") -> Login:
    return Login(id=identity, mail=mail)


def logins(db: Dynashard) -> Any:
    return db.collection(Login)


def resharding(world: Moving, stage: str = "prepare") -> Resharder:
    """Begin a resize from 4 to 8 shards, and advance it to a stage."""
    resharder = world.new(entities=(Login,))
    resharder.start(ABC, 8, survey=False)
    world.until(ABC, stage, resharder)
    return resharder


def stored_late(world: Moving, happens: Callable[[], object], identity: str = MOVES) -> None:
    """Create an item under the view of PREPARE. Its request is executed after `happens`, and never answered."""
    writer = client(world, [lost_after(OPERATION, happens), lost_request(OPERATION, nth=None)])
    with pytest.raises(OutcomeUnknownError):
        logins(writer).create(login(identity))


def around(before: Callable[[], object], after: Callable[[], object] = lambda: None, *, nth: int = 1) -> Fault:
    """Let something happen before a request is executed, and something else before it is answered."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        before()
        answer = send(request)
        after()
        return answer

    return Fault(OPERATION, strike, nth)


def places(world: Moving, identity: str) -> list[str]:
    return world.places(Login).get((ABC.partition or "", identity), [])


def owner(world: Moving) -> str | None:
    found = logins(client(world)).find(tenant="abc", mail="ada@x.org")
    return None if found is None else found.id


def last_reader(world: Moving, resharder: Resharder) -> Dynashard:
    """Advance the resize until SETTLE ends; return a client that has read the topology just before."""
    while True:
        reader = client(world)
        logins(reader).exists(tenant="abc", id="any")
        step = resharder.advance(ABC.key)
        if stage_of(world.record(ABC.key)) != "settle":
            return reader
        for task in step.tasks:
            while not resharder.work(ABC.key, task, seconds=60):
                pass
        world.clock.now += step.seconds if step.kind == "wait" else 0


@pytest.mark.parametrize("stage", ["settle", "sweep"])
def test_a_stray_whose_value_is_still_reserved_for_it_is_moved_home(world: Moving, stage: str) -> None:
    resharder = resharding(world)
    stored_late(world, lambda: world.until(ABC, stage, resharder))

    status = world.finish(ABC, resharder)

    assert (status.late, status.left) == (1, 0)
    assert owner(world) == MOVES
    assert world.misplaced(Login, 8) == []


def test_the_sweeper_leaves_a_stray_whose_value_another_item_has_since(world: Moving) -> None:
    resharder = resharding(world)
    stored_late(world, lambda: world.until(ABC, "sweep", resharder))
    logins(client(world)).create(login(MOVES_TOO))

    status = world.finish(ABC, resharder)

    assert (status.late, status.left, status.swept) == (0, 1, True)
    assert owner(world) == MOVES_TOO
    assert not logins(client(world)).exists(tenant="abc", id=MOVES)


def test_the_next_resize_leaves_it_too(world: Moving) -> None:
    resharder = resharding(world)
    stored_late(world, lambda: world.finish(ABC, resharder))
    logins(client(world)).create(login(MOVES_TOO))
    resharder.start(ABC, 4, survey=False)

    world.finish(ABC, resharder)

    assert owner(world) == MOVES_TOO


@pytest.mark.parametrize("act", ["read", "look up", "list", "create", "transact"])
def test_a_client_in_settle_does_not_bring_back_a_stray_whose_value_another_item_has_since(
    world: Moving, act: str
) -> None:
    resharder = resharding(world, "settle")
    reader = last_reader(world, resharder)
    [old] = [item[PK] for item in strays(Login, 4, 8) if item[SK]["S"] == MOVES]
    item = {**definition(Login).encode(login(MOVES).__dict__), "Rev": {"S": "late"}, "Type": {"S": "move.v1.Login"}}
    world.put({PK: old, SK: {"S": MOVES}, **item})
    world.put(left_over(MOVES))
    logins(client(world)).create(login(MOVES_TOO))

    if act == "read":
        assert logins(reader).find(tenant="abc", id=MOVES) is None
    elif act == "look up":
        assert logins(reader).get(tenant="abc", mail="ada@x.org").id == MOVES_TOO
    elif act == "list":
        assert [each.id for each in logins(reader).scan({"tenant": "abc"})] == [MOVES_TOO]
    elif act == "create":
        logins(reader).create(login(MOVES, None))
    else:
        assert isinstance(outcome(lambda: reader.transact(Update(Login, login(MOVES), set={"visits": 1}))), Exception)
    status = world.finish(ABC, resharder)

    assert owner(world) == MOVES_TOO
    assert status.late == 0
    assert len(places(world, MOVES)) == (1 if act in ("create", "look up") else 0)
    assert logins(client(world)).exists(tenant="abc", id=MOVES) == (act == "create")
    assert world.marks() == []


def left_over(identity: str, revision: str | None = None) -> Wire:
    """A reservation of an item that is not stored where readers look."""
    [unique] = definition(Login).unique
    [place] = reserved_for(definition(Login), login(identity).__dict__)
    return reservation(place, unique, definition(Login).key_of(login(identity)), None, revision)


def test_a_late_create_is_not_acknowledged_if_another_item_got_its_value_meanwhile(world: Moving) -> None:
    resharder = resharding(world)
    late = around(lambda: world.until(ABC, "sweep", resharder), lambda: logins(client(world)).create(login(MOVES_TOO)))

    done = outcome(lambda: logins(client(world, [late])).create(login(MOVES)))

    assert isinstance(done, OutcomeUnknownError)
    assert owner(world) == MOVES_TOO
    assert world.finish(ABC, resharder).left == 1
    assert not logins(client(world)).exists(tenant="abc", id=MOVES)


@pytest.mark.parametrize("revision", [None, "earlier"])
def test_a_late_take_over_meets_an_owner_that_came_back_under_another_count(
    world: Moving, revision: str | None
) -> None:
    """The owner's former home, which the request checks, is empty after the resize."""
    world.put(left_over(MOVES, revision))
    resharder = resharding(world)

    def happens() -> None:
        world.finish(ABC, resharder)
        logins(client(world)).create(login(MOVES))

    # The first request meets the reservation, and the second takes it over.
    done = outcome(lambda: logins(client(world, [around(happens, nth=2)])).create(login(STAYS)))

    assert isinstance(done, NotUniqueError)
    assert owner(world) == MOVES
    assert places(world, STAYS) == []


def test_a_late_create_does_not_shorten_what_is_reserved_for_a_later_item_with_its_key(world: Moving) -> None:
    resharder = resharding(world)
    soon, never = datetime.fromtimestamp(world.clock.now + 10_000, UTC), None

    def happens() -> None:
        world.finish(ABC, resharder)
        logins(client(world)).create(login(MOVES).model_copy(update={"until": never}))

    writer = logins(client(world, [around(happens)]))
    done = outcome(lambda: writer.create(login(MOVES).model_copy(update={"until": soon})))
    world.clock.now += 20_000

    assert isinstance(done, AlreadyExistsError)
    assert owner(world) == MOVES
    with pytest.raises(NotUniqueError):
        logins(client(world)).create(login(STAYS))


def test_what_is_left_over_of_an_items_former_self_is_taken_by_its_next_one(world: Moving) -> None:
    world.put(left_over(MOVES, "earlier"))

    logins(client(world)).create(login(MOVES))

    assert owner(world) == MOVES


@pytest.mark.parametrize("taken", [False, True])
def test_verify_mends_a_stray_only_if_its_value_is_still_reserved_for_it(world: Moving, taken: bool) -> None:  # noqa: FBT001
    resharder = resharding(world)
    stored_late(world, lambda: world.finish(ABC, resharder))
    if taken:
        logins(client(world)).create(login(MOVES_TOO))

    verifier = Verifier(client(world), world.topology, Declared([Login]), clock=world.clock)
    found = verifier.run(Task(mend=True))

    [away] = [each for each in found.findings if each.kind is Kind.AWAY]
    assert away.mended is not taken
    assert owner(world) == (MOVES_TOO if taken else MOVES)
    assert logins(client(world)).exists(tenant="abc", id=MOVES) is not taken
