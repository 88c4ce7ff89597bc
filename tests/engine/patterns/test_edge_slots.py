"""Sharded counters: spread over slots, and exact under any fault of a request."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import cycle
from typing import Any

import pytest

from dynashard import Create, Entity, Key, Registry, Shards
from dynashard.errors import (
    DeclarationError,
    InvalidKeyError,
    InvalidValueError,
    OutcomeUnknownError,
    TransactionRefusedError,
)
from dynashard.testing.faults import conflict, lost_request, meanwhile, meanwhile_repeated
from dynashard.transport import metered
from dynashard_patterns.edges.slots import Slots, SlotStore
from tests.engine.stored_things import Note, World

pytestmark = pytest.mark.engine

REGISTRY = Registry()


class Plays(Entity, name="test.v1.Plays", key=Key(partition="{tenant}:{series}:{slot}"), registry=REGISTRY):
    tenant: str
    series: str
    slot: int
    plays: int = 0
    hours: Decimal = Decimal(0)


class Hourly(
    Entity, name="test.v1.Hourly", key=Key("{tenant}", "{hour:02d}#{slot:02d}"), shards=Shards(2), registry=REGISTRY
):
    tenant: str
    hour: int
    slot: int
    count: int | None = None


PLAYS = Slots(Plays, slots=4)
DRAMA = {"tenant": "abc", "series": "drama"}
FILM = {"tenant": "abc", "series": "film"}


def plays(world: World) -> SlotStore[Plays]:
    turns = cycle([0.0, 0.3, 0.6, 0.99])
    world.drawn = lambda: next(turns)
    return SlotStore(world.store, PLAYS)


def test_a_counter_is_the_sum_of_its_slots(world: World) -> None:
    counter = plays(world)
    for amount in range(1, 7):
        counter.add(DRAMA, plays=amount, hours=Decimal("0.1"))
    counter.add(FILM, plays=-2)

    assert counter.total(DRAMA) == {"plays": 21, "hours": Decimal("0.6")}
    assert counter.totals([FILM, DRAMA, {**DRAMA, "series": "none"}])[::2] == [
        {"plays": -2, "hours": 0},
        {"plays": 0, "hours": 0},
    ]
    assert len({item["PK"]["S"] for item in world.raw()}) == 5


def test_slots_may_be_part_of_sort_keys(world: World) -> None:
    hourly = SlotStore(world.store, Slots(Hourly, slots=2))
    for hour in (1, 1, 2):
        hourly.add({"tenant": "abc", "hour": hour}, count=1)

    assert hourly.total({"tenant": "abc", "hour": 1}, consistent=True) == {"count": 2}


def test_adding_slots_keeps_the_total(world: World) -> None:
    few = SlotStore(world.store, Slots(Plays, slots=1))
    few.add(DRAMA, plays=5)
    many = plays(world)
    many.add(DRAMA, plays=1)
    many.add(DRAMA, plays=1)

    assert many.total(DRAMA)["plays"] == 7


def test_an_addition_and_a_read_each_take_one_round_trip(world: World) -> None:
    counter = plays(world)
    with metered() as adding:
        counter.add(DRAMA, plays=1)
        counter.add(DRAMA, plays=1)
    with metered() as reading:
        counter.total(DRAMA)

    assert (adding.consumed.requests, adding.consumed.write_units) == (2, 4)
    assert (reading.consumed.requests, reading.consumed.read_units) == (1, 2)


def test_a_step_of_a_transaction_counts_with_it_or_not_at_all(world: World) -> None:
    counter = plays(world)
    note = Note(tenant="abc", id="1")

    world.transact(Create(note), counter.adding(DRAMA, plays=1))
    with pytest.raises(TransactionRefusedError):
        world.transact(Create(note), counter.adding(DRAMA, plays=1))

    assert counter.total(DRAMA)["plays"] == 1


@pytest.mark.parametrize("there", [False, True])
def test_a_request_sent_twice_is_counted_once(world: World, *, there: bool) -> None:
    counter = plays(world)
    world.drawn = lambda: 0.0
    if there:
        counter.add(DRAMA, plays=1)
    rival = SlotStore(world.store, PLAYS)
    twice = meanwhile_repeated("TransactWriteItems", lambda: rival.add(DRAMA, plays=10))
    world.faults(twice)
    SlotStore(world.store, PLAYS).add(DRAMA, plays=1)

    assert counter.total(DRAMA)["plays"] == 11 + there


def test_conflicts_are_outlasted_and_lost_requests_counted_once(world: World) -> None:
    world.faults(conflict("TransactWriteItems"), lost_request("TransactWriteItems", nth=3))
    counter = plays(world)

    counter.add(DRAMA, plays=1)
    counter.add(DRAMA, plays=1)

    assert counter.total(DRAMA)["plays"] == 2


def test_an_addition_that_cannot_be_settled_is_unknown(world: World) -> None:
    world.faults(lost_request("TransactWriteItems", nth=None))

    with pytest.raises(OutcomeUnknownError):
        plays(world).add(DRAMA, plays=1)


def test_two_concurrent_creators_of_a_slot_are_both_counted(world: World) -> None:
    rival = SlotStore(world.store, PLAYS)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.add(DRAMA, plays=10)))
    world.drawn = lambda: 0.0

    SlotStore(world.store, PLAYS).add(DRAMA, plays=1)

    assert plays(world).total(DRAMA)["plays"] == 11


def test_concurrent_additions_are_all_counted(world: World) -> None:
    counter = SlotStore(world.store, Slots(Plays, slots=2))
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: counter.add(DRAMA, plays=1), range(60)))

    assert counter.total(DRAMA, consistent=True)["plays"] == 60


def test_an_impossible_addition_is_refused(world: World) -> None:
    counter = plays(world)
    with pytest.raises(InvalidKeyError, match="slot"):
        counter.add({**DRAMA, "slot": 1}, plays=1)
    with pytest.raises(InvalidKeyError, match="series"):
        counter.add({"tenant": "abc"}, plays=1)
    with pytest.raises(InvalidValueError, match="nothing"):
        counter.add(DRAMA, nothing=1)
    with pytest.raises(InvalidValueError):
        counter.add(DRAMA)
    assert counter.totals([]) == []
    assert world.raw() == []


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("tenant", {"slot": "tenant"}),
    ("text", {"slot": "text"}),
    ("0 slots", {"slots": 0}),
    ("101 slots", {"slots": 101}),
]


@pytest.mark.parametrize(("message", "declared"), WRONG, ids=[message for message, _ in WRONG])
def test_a_wrong_counter_is_refused_when_it_is_declared(message: str, declared: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match=message):
        Slots(Plays if "slots" in declared else Note, **declared)


def test_a_counter_without_a_number_is_refused() -> None:
    class Empty(Entity, name="test.v1.Empty", key=Key(partition="{slot}"), registry=Registry()):
        slot: int
        total: int = 5

    with pytest.raises(DeclarationError, match="no number"):
        Slots(Empty)
