"""Creates with an idempotency key whose answers are lost, late or refused, in every phase of a changing shard count."""

from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from typing import Any

import pytest
from pydantic import field_validator

from dynashard import Entity, Key, Registry
from dynashard.errors import (
    AlreadyExistsError,
    IdempotencyKeyReusedError,
    InputError,
    ItemTooLargeError,
    NotUniqueError,
    OutcomeUnknownError,
    RequestInProgressError,
    ThrottledError,
    UndecodableItemError,
)
from dynashard.testing.faults import (
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
from dynashard.topology import Phase
from dynashard.transport import Wire, metered
from dynashard_serving.documents import REVISION, Document, validated
from dynashard_serving.idempotency import KEPT_SECONDS, Attempt, IdempotentCreates
from dynashard_serving.limits import LONGEST_SECONDS
from tests.engine.patterns.attachment_world import Report
from tests.engine.repository.late_world import outcome
from tests.engine.repository.moving_states import build
from tests.engine.repository.moving_things import PHASES, RESIZES, Spot
from tests.engine.serving.idempotent_scene import (
    KEY,
    NOTE,
    PERSON,
    TRANSACT,
    Ended,
    InSteps,
    Scene,
    StoredItem,
    cancelled,
)
from tests.engine.stored_things import Note, Person, World

pytestmark = pytest.mark.engine

STATES = {
    Phase.STABLE: [("nothing", "nothing"), ("expired", "nothing")],
    Phase.PREPARE: [("nothing", "nothing"), ("expired", "nothing")],
    Phase.MOVE: [("nothing", "nothing"), ("expired", "nothing"), ("bare mark", "nothing"), ("mark", "expired")],
    Phase.SETTLE: [("nothing", "nothing"), ("bare mark", "nothing"), ("mark", "expired")],
}


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
"""The faults of attempts, and whether the outcome may stay unknown."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_repeated_create_makes_one_item_and_none_after_its_delete(scene: Scene, fault: str, phase: Phase) -> None:
    plan, may_be_unknown = FAULTS[fault]
    world = scene.world
    for name, (count, target) in RESIZES.items():
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
    for name, (count, target) in RESIZES.items():
        spot, held = Spot(world, count, target), StoredItem()
        build(spot, ("nothing", "nothing"))
        spot.enter(phase)
        # Without an answer to any later request, the outcome of the token is unknown, too.
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
    calm = scene.without_faults()
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


def test_an_expired_record_answers_no_create_that_must_not_begin(scene: Scene) -> None:
    def refuse() -> None:
        raise InputError("It is too late.")

    created, _ = scene.create()
    creates = IdempotentCreates(scene.records, scene.world.transport, clock=scene.world.clock)
    attempt = Attempt("abc", "k", NOTE, validated(Note, NOTE), check=refuse)
    scene.world.clock.at += KEPT_SECONDS
    assert creates.run(attempt, scene.world.of(Note)) == (created, True)

    # DynamoDB removes records days after they have expired.
    scene.world.clock.at += 1
    with pytest.raises(InputError):
        creates.run(attempt, scene.world.of(Note))


@pytest.mark.parametrize("phase", [Phase.STABLE, *PHASES])
def test_a_refusal_is_not_remembered(scene: Scene, phase: Phase) -> None:
    for name, (count, target) in RESIZES.items():
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
    """Another transaction of the same key has stored its item, but not yet its record."""
    calm = scene.without_faults()
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


def test_a_create_in_steps_that_is_not_unique_leaves_no_record(scene: Scene) -> None:
    class Refusing(InSteps):
        def create(self, *_: Any, **__: Any) -> Any:
            raise NotUniqueError("Another item has this mail.", fields=["mail"])

    with pytest.raises(NotUniqueError):
        scene.create(PERSON, model=Person, items=Refusing(scene.world.store, Person))

    assert scene.kept() == []
    other = {**PERSON, "mail": "eve@example.com"}
    assert scene.create(other, model=Person, items=InSteps(scene.world.store, Person))[1] is False


def killed(_send: Send, _request: Any) -> Wire:
    raise Ended


def test_a_create_in_steps_is_taken_over_only_when_the_first_request_can_no_longer_run(scene: Scene) -> None:
    world = scene.world
    world.faults(Fault("PutItem", killed, nth=2))
    with pytest.raises(Ended):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    [record] = scene.kept()
    world.faults()

    world.clock.at += LONGEST_SECONDS
    with pytest.raises(RequestInProgressError):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    world.clock.at += 1
    created, _ = scene.create(PERSON, model=Person, items=InSteps(world.store, Person))

    assert created["id"] in record["item_plan"]["S"]
    assert [item["id"]["S"] for item in scene.living()] == [created["id"]]


def test_a_large_attachment_is_created_as_it_was_sent_also_by_a_later_request(scene: Scene) -> None:
    """Its record could not hold it: standard base64 is sent, and the other alphabet is that of documents."""
    world, trace = scene.world, Random(1).randbytes(600_000)
    body = {"tenant": "abc", "id": "1", "trace": b64encode(trace).decode()}
    world.faults(Fault("PutItem", killed, nth=2))
    with pytest.raises(Ended):
        scene.create(body, model=Report)
    [record] = scene.kept()
    assert len(record["item_plan"]["S"]) < 1000
    world.faults()
    world.clock.at += LONGEST_SECONDS + 1

    created, _ = scene.create(body, model=Report)

    assert world.of(Report).get({"tenant": "abc", "id": "1"}, include=["trace"]).trace == trace
    assert scene.create(body, model=Report) == (created, True)


def test_a_record_without_an_answer_and_a_time_is_under_way(scene: Scene) -> None:
    world = scene.world
    world.faults(Fault("PutItem", killed, nth=2))
    with pytest.raises(Ended):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))
    [record] = scene.kept()
    del record["in_progress_expiration"]
    world.inner.call("PutItem", {"TableName": scene.records, "Item": record})
    world.faults()

    with pytest.raises(RequestInProgressError):
        scene.create(PERSON, model=Person, items=InSteps(world.store, Person))

    assert scene.living() == []


@pytest.mark.parametrize(
    "damage",
    [
        {"answer": {"S": "no JSON"}},
        {"answer": {"S": "7"}},
        {"answer": {"N": "7"}},
        {"shards": {"S": "two"}},
        {"shards": {"L": []}},
    ],
)
def test_a_record_that_another_program_has_damaged_is_named(scene: Scene, damage: Wire) -> None:
    scene.create()
    [record] = scene.kept()
    scene.world.inner.call("PutItem", {"TableName": scene.records, "Item": {**record, **damage}})

    with pytest.raises(UndecodableItemError, match=record["id"]["S"]):
        scene.create()

    assert len(scene.living()) == 1


class Quoting(Entity, name="test.v1.Quoting", key=Key("{tenant}", "{id}"), registry=Registry()):
    """An entity whose validator changes characters of its text."""

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
