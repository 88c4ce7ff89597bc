"""Creates with an idempotency key whose answers are lost, late or refused, in every phase of a changing shard count."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

import pytest
from pydantic import field_validator

from dynashard import Entity, Key, Registry
from dynashard.errors import (
    AlreadyExistsError,
    DynashardError,
    IdempotencyKeyReusedError,
    ItemTooLargeError,
    OutcomeUnknownError,
    ThrottledError,
)
from dynashard.repository import Repository, late
from dynashard.topology import Phase
from dynashard.transport import Transport, metered
from dynashard.transport.classification import Refusal, classify, unanswered
from dynashard.transport.interface import Wire
from dynashard_serving.documents import REVISION, Document, validated
from dynashard_serving.idempotency import KEPT_SECONDS, Attempt, IdempotentCreates
from tests.engine.repository.late_world import ABC, HOW, STAGES, client, judged, moving_ids, outcome, reach, things
from tests.engine.repository.moving_things import CHANGES, IDENTITY, PHASES, Spot
from tests.engine.repository.test_repository_moving import build
from tests.engine.resharding.resharding_world import Moving, Thing, moving_world
from tests.engine.stored_things import Note, Person, World
from tests.faults import (
    AttemptsOn,
    Fault,
    Send,
    afterwards,
    conflict,
    lost_after,
    lost_answer,
    lost_request,
    meanwhile,
    throttled,
    unreachable,
)

pytestmark = pytest.mark.engine

TRANSACT = "TransactWriteItems"
NOTE = {"tenant": "abc", "id": IDENTITY, "text": "mine"}
KEY = {"tenant": "abc", "id": IDENTITY}
PERSON = {"tenant": "abc", "mail": "ada@example.com"}
STATES = {
    Phase.STABLE: [("nothing", "nothing"), ("expired", "nothing")],
    Phase.PREPARE: [("nothing", "nothing"), ("expired", "nothing")],
    Phase.MOVE: [("nothing", "nothing"), ("expired", "nothing"), ("bare mark", "nothing"), ("mark", "expired")],
    Phase.SETTLE: [("nothing", "nothing"), ("bare mark", "nothing"), ("mark", "expired")],
}


@dataclass
class StoredItem:
    """A fault that holds the first request back, without an answer, until it is let go."""

    requests: list[Callable[[], Wire]] = field(default_factory=list)

    @property
    def fault(self) -> Fault:
        def strike(send: Send, request: Mapping[str, Any]) -> Wire:
            self.requests.append(lambda: send(request))
            raise unanswered(TRANSACT, "ReadTimeoutError", "The answer was lost")

        return Fault(TRANSACT, strike)

    def let_go(self) -> None:
        while self.requests:
            outcome(self.requests.pop())


class Ended(BaseException):
    """The function was ended."""


def ended_after(happens: Callable[[], Any]) -> Fault:
    """All this happens, the request is executed, and the function is ended."""

    def strike(send: Send, request: Mapping[str, Any]) -> Wire:
        happens()
        send(request)
        raise Ended

    return Fault(TRANSACT, strike)


def cancelled(*codes: str, item: Wire | None = None, nth: int | None = 1) -> Fault:
    """The transaction is cancelled for these reasons; the item is that of the first."""
    reasons = [{"Code": code} for code in codes]
    if item is not None:
        reasons[0]["Item"] = item  # type: ignore[assignment]
    body = {"CancellationReasons": reasons}
    refusal = Refusal(operation=TRANSACT, status=400, code="TransactionCanceledException", message="", body=body)

    def strike(_send: Send, _request: Mapping[str, Any]) -> Wire:
        raise classify(refusal)

    return Fault(TRANSACT, strike, nth)


@dataclass
class Scene:
    """A table with a table of records."""

    world: World
    records: str

    def create(
        self, body: Document = NOTE, key: str = "k", model: type[Any] = Note, items: Repository[Any] | None = None
    ) -> tuple[Document, bool]:
        attempt = Attempt("abc", key, body, validated(model, body))
        creates = IdempotentCreates(self.records, self.world.transport, clock=self.world.clock)
        return creates.run(attempt, items or self.world.of(model))

    def attempts(self, *plan: Fault) -> AttemptsOn:
        """From now on these faults strike single attempts."""
        self.world.transport = AttemptsOn(self.world.inner, *plan)
        return self.world.transport

    def beside(self) -> "Scene":
        """The same table and records without faults."""
        world = World(self.world.inner, self.world.table, self.world.dynamodb)
        world.new_revision = self.world.new_revision
        return Scene(world, self.records)

    def living(self) -> list[Wire]:
        """Items of which readers may know."""
        now = self.world.clock()
        items = [item for item in self.world.raw() if "MovedTo" not in item]
        return [item for item in items if "ExpiresAt" not in item or float(item["ExpiresAt"]["N"]) > now]

    def kept(self) -> list[Wire]:
        found: list[Wire] = self.world.dynamodb.call("Scan", TableName=self.records, ConsistentRead=True)["Items"]
        return found


@pytest.fixture
def scene(world: World, records: str) -> Scene:
    return Scene(world, records)


def each(fault: Callable[..., Fault], *numbers: int) -> list[Fault]:
    return [fault(TRANSACT, nth=number) for number in numbers]


FAULTS: dict[str, tuple[list[Fault], bool]] = {
    "none": ([], False),
    "lost before": (each(lost_request, 1), False),
    "lost after": (each(lost_answer, 1), False),
    "lost before, until it is settled": (each(lost_request, 1, 2, 3, 4), False),
    "lost after, until it is settled": (each(lost_answer, 1, 2, 3, 4), False),
    "lost before, for ever": ([lost_request(TRANSACT, nth=None)], True),
    "lost after, for ever": ([lost_after(TRANSACT, lambda: None, nth=None)], True),
    "throttled": (each(throttled, 1, 2), False),
    "in conflict": (each(conflict, 1, 2), False),
    "not connected": (each(unreachable, 1), False),
    "lost after, then throttled": ([lost_answer(TRANSACT), *each(throttled, 2, 3, 4)], False),
}
"""What happens to attempts, and whether the outcome may stay unknown."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_repeated_create_makes_one_item_and_none_after_its_delete(scene: Scene, fault: str, phase: Phase) -> None:
    plan, may_be_unknown = FAULTS[fault]
    world = scene.world
    for name, (count, target) in CHANGES.items():
        for state in STATES[phase]:
            spot, key = Spot(world, count, target), f"{name} {state}"
            build(spot, state)
            spot.enter(phase)
            wire = scene.attempts(*plan)

            first = outcome(lambda: scene.create(key=key))  # noqa: B023 - called at once
            struck = not wire.waiting
            scene.attempts()
            again, replayed = scene.create(key=key)
            living = scene.living()
            world.notes.delete(KEY)
            last = scene.create(key=key)

            assert struck
            if may_be_unknown:
                assert isinstance(first, OutcomeUnknownError), first
                assert first.retryable
            else:
                assert first == (again, False), key
                assert replayed
            assert [item["Rev"]["S"] for item in living] == [again[REVISION]], key
            assert last == (again, True)
            assert scene.living() == []


WHEN = ("after the answer", "after the repeat", "after the delete")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("settled", [True, False])
def test_a_late_request_creates_no_second_item(scene: Scene, *, settled: bool, when: str, phase: Phase) -> None:
    world = scene.world
    for name, (count, target) in CHANGES.items():
        spot, held = Spot(world, count, target), StoredItem()
        build(spot, ("nothing", "nothing"))
        spot.enter(phase)
        # Without an answer to anything that follows, not even the token's fate is known.
        scene.attempts(held.fault, *each(lost_request, *(range(2, 5) if settled else range(2, 20))))

        outcome(lambda: scene.create(key=name))  # noqa: B023 - called at once
        if when == WHEN[0]:
            held.let_go()
        scene.attempts()
        again, _ = scene.create(key=name)
        if when == WHEN[1]:
            held.let_go()
        living = scene.living()
        world.notes.delete(KEY)
        held.let_go()

        assert [item["Rev"]["S"] for item in living] == [again[REVISION]], name
        assert scene.create(key=name) == (again, True)
        assert scene.living() == []


def test_a_create_and_its_repeat_take_one_round_trip_at_twice_the_write_units(scene: Scene) -> None:
    with metered() as first:
        scene.create()
    wire = scene.world.faults()
    scene.create()

    assert (first.consumed.requests, len(wire.calls)) == (1, 1)
    assert first.consumed.write_units == 2 + 2


def test_another_body_is_refused_whether_the_item_is_there_or_gone(scene: Scene) -> None:
    created, _ = scene.create(PERSON, model=Person)
    other = {**PERSON, "mail": "other@example.com"}

    for _ in range(2):
        with pytest.raises(IdempotencyKeyReusedError):
            scene.create(other, model=Person)
        assert len(scene.living()) <= 1
        outcome(lambda: scene.world.people.delete({"tenant": "abc", "id": created["id"]}))

    assert scene.living() == []


@pytest.mark.parametrize("order", [meanwhile, afterwards, lost_after])
def test_of_two_concurrent_requests_one_creates_and_both_get_its_answer(
    scene: Scene, order: Callable[..., Fault]
) -> None:
    second: list[tuple[Document, bool]] = []
    calm = scene.beside()
    scene.world.faults(order(TRANSACT, lambda: second.append(calm.create(PERSON, model=Person))))

    first = scene.create(PERSON, model=Person)

    assert len(scene.living()) == 1
    assert first[0] == second[0][0]
    assert [first[1], second[0][1]].count(False) == 1


def test_of_many_concurrent_requests_one_creates(scene: Scene) -> None:
    many, begin = 8, Barrier(8)

    def create(_: int) -> Document:
        begin.wait()
        return scene.create(PERSON, model=Person)[0]

    with ThreadPoolExecutor(many) as pool:
        answers = list(pool.map(create, range(many)))

    assert len({answer[REVISION] for answer in answers}) == 1
    assert len(scene.living()) == 1


def test_an_expired_record_is_ignored(scene: Scene) -> None:
    first, _ = scene.create(PERSON, model=Person)
    scene.world.clock.at += KEPT_SECONDS
    last, replayed = scene.create(PERSON, model=Person)
    scene.world.clock.at += 1
    new, anew = scene.create(PERSON, model=Person)

    assert (replayed, last) == (True, first)
    assert (anew, new["id"] == first["id"]) == (False, False)
    assert len(scene.living()) == 2


@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
def test_a_refusal_is_not_remembered(scene: Scene, phase: Phase) -> None:
    for name, (count, target) in CHANGES.items():
        spot = Spot(scene.world, count, target)
        build(spot, ("live", "nothing") if phase is not Phase.SETTLE else ("mark", "live"))
        spot.enter(phase)

        with pytest.raises(AlreadyExistsError):
            scene.create(key=name)
        scene.world.notes.delete(KEY)

        assert scene.create(key=name)[1] is False
        scene.world.notes.delete(KEY)


def test_a_refusal_after_a_lost_request_is_final(scene: Scene) -> None:
    held, world = StoredItem(), scene.world
    calm = world.notes
    calm.create(Note(**{**NOTE, "text": "theirs"}))
    scene.attempts(held.fault)

    with pytest.raises(AlreadyExistsError):
        scene.create()
    calm.delete(KEY)
    held.let_go()

    assert (scene.living(), scene.kept()) == ([], [])


def test_no_refusal_while_another_request_holds_the_record(scene: Scene) -> None:
    """The transaction of the same key has stored its item and not yet its record."""
    calm = scene.beside()
    first, _ = calm.create()
    [item] = scene.living()
    scene.world.faults(cancelled("ConditionalCheckFailed", "TransactionConflict", item=item))

    assert scene.create() == (first, True)


def test_a_throttle_of_the_records_requests_no_shards(scene: Scene) -> None:
    scene.world.faults(cancelled("None", "ThrottlingError", nth=None))
    with pytest.raises(ThrottledError):
        scene.create()
    assert scene.world.throttles == []

    scene.world.faults(cancelled("ThrottlingError", "None", nth=None))
    with pytest.raises(ThrottledError):
        scene.create()
    assert [throttle[0] for throttle in scene.world.throttles] == ["test.v1.Note"]


class InSteps(Repository[Any]):
    """As if its items could be in no transaction."""

    @property
    def can_create_with(self) -> bool:
        return False


@pytest.mark.parametrize("lost", [lost_request, lost_answer])
def test_a_create_begun_in_steps_continues_in_steps(scene: Scene, lost: Callable[..., Fault]) -> None:
    world = scene.world
    world.faults(lost("PutItem", nth=2), lost_request("GetItem", nth=None))
    with pytest.raises(OutcomeUnknownError):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    world.faults()

    created, _ = scene.create(PERSON, model=Person)

    assert [item["id"]["S"] for item in scene.living()] == [created["id"]]
    assert scene.create(PERSON, model=Person, items=InSteps(world.store, Person)) == (created, True)


class Quoting(Entity, name="test.v1.Quoting", key=Key("{tenant}", "{id}"), registry=Registry()):
    """Its text has other characters when it is stored."""

    tenant: str
    id: str
    text: str

    @field_validator("text")
    @classmethod
    def quoting(cls, text: str) -> str:
        return text.replace("-", '"')


def test_an_answer_that_no_record_can_hold_is_refused_before_anything_is_stored(scene: Scene) -> None:
    body = {"tenant": "abc", "id": "1", "text": "-" * 250_000}
    wire = scene.world.faults()

    with pytest.raises(ItemTooLargeError):
        scene.create(body, model=Quoting)

    assert (wire.sent(TRANSACT), scene.living(), scene.kept()) == (0, [], [])


# Requests that are executed, or answered, when the view has ended under which they were sent.


@pytest.fixture
def moving(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


def thing(moving: Moving, records: str, identity: str, plan: list[Fault]) -> tuple[Document, bool]:
    body = {"tenant": "abc", "id": identity}
    creates = IdempotentCreates(records, moving.inner, clock=moving.clock)
    return creates.run(Attempt("abc", identity, body, Thing(**body)), things(client(moving, plan)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("how", "begins", "to"),
    [
        *((how, "", 8) for how in (*HOW, "ended")),
        ("ended", "prepare", 8),
        ("answered late", "prepare", 8),
        ("executed late", "move", 8),
        ("ended", "settle", 8),
        ("ended", "prepare", 2),
        ("executed late", "settle", 2),
    ],
)
def test_an_answered_item_is_found_however_late_it_was_stored(
    moving: Moving, records: str, how: str, begins: str, to: int
) -> None:
    stages = STAGES[STAGES.index(begins or "prepare") + 1 :]
    for identity, stage in zip(moving_ids(4, to, len(stages)), stages, strict=True):
        if begins:
            moving.resharder.start(ABC, to, survey=False)
            moving.until(ABC, begins)

        def happens(stage: str = stage) -> None:
            if not begins:
                moving.resharder.start(ABC, to, survey=False)
            reach(moving, stage)

        plan = [ended_after(happens) if how == "ended" else HOW[how](TRANSACT, happens)]
        try:
            first = outcome(lambda: thing(moving, records, identity, plan))  # noqa: B023 - called at once
        except Ended:
            first = None
        again = outcome(lambda: thing(moving, records, identity, []))  # noqa: B023 - called at once

        acknowledged = not (isinstance(first, DynashardError) and isinstance(again, DynashardError))
        assert acknowledged, (stage, first, again)
        judged(moving, identity, acknowledged=True)
        moving.finish(ABC)
        judged(moving, identity, acknowledged=True)
        assert thing(moving, records, identity, []) == (again[0], True)
        moving.change(ABC, 4)
        judged(moving, identity, acknowledged=True)


def test_an_item_that_cannot_be_moved_home_is_not_answered_as_done(
    moving: Moving, records: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its home was taken before it was stored at the old one, of which nobody ever knew."""
    [identity] = moving_ids(4, 8, 1)
    moving.resharder.start(ABC, 8, survey=False)
    moving.until(ABC, "prepare")

    def taken() -> None:
        reach(moving, "stable")
        things(client(moving)).create(Thing(tenant="abc", id=identity, text="theirs"))

    with pytest.raises(Ended):
        thing(moving, records, identity, [ended_after(taken)])

    with pytest.raises(OutcomeUnknownError) as unknown:
        thing(moving, records, identity, [])
    assert unknown.value.retryable

    monkeypatch.setattr(late, "_TRIES", 0)
    with pytest.raises(OutcomeUnknownError):
        thing(moving, records, identity, [])
