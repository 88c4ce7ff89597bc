"""Counters of edges: spread over slots, and exact under any fault of a request."""

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest

from dynashard import Create, Registry
from dynashard.errors import DeclarationError, OutcomeUnknownError, TransactionRefusedError
from dynashard.testing.faults import conflict, lost_request, meanwhile, meanwhile_repeated
from dynashard.transactions import Transaction
from dynashard.transport import metered
from dynashard_patterns import COUNT_KEY, EdgeCount, Edges
from dynashard_patterns.edges.declaration import Slots
from dynashard_patterns.edges.slots import SlotStore
from tests.engine.patterns.edge_world import Fan
from tests.engine.stored_things import Note, World

pytestmark = pytest.mark.engine


class Followers(EdgeCount, name="test.v1.Followers", key=COUNT_KEY, registry=Registry()): ...


ADA = {"tenant_id": "abc", "node": "User.ada", "way": "FANNED_BY"}
BOB = {"tenant_id": "abc", "node": "User.bob", "way": "FANNED_BY"}


class Counters(SlotStore):
    """Counters that are added to by transactions of their own."""

    def add(self, key: dict[str, str], amount: int) -> None:
        Transaction(self._store, [self.adding(key, amount)]).run()


def counters(world: World, slots: int = 4) -> Counters:
    return Counters(world.store, Slots(Followers, slots))


def spread(world: World) -> Counters:
    """Return counters whose next additions go to one slot after the other."""
    turns = cycle([0.0, 0.3, 0.6, 0.99])
    world.drawn = lambda: next(turns)
    return counters(world)


def test_a_counter_is_the_sum_of_its_slots(world: World) -> None:
    counter = spread(world)
    for amount in range(1, 7):
        counter.add(ADA, amount)
    counter.add(BOB, -2)

    assert (counter.total(ADA), counter.total(BOB), counter.total({**ADA, "node": "User.eve"})) == (21, -2, 0)
    assert len({item["PK"]["S"] for item in world.raw()}) == 5


def test_adding_slots_keeps_the_total(world: World) -> None:
    counters(world, slots=1).add(ADA, 5)
    many = spread(world)
    many.add(ADA, 1)
    many.add(ADA, 1)

    assert many.total(ADA) == 7


def test_an_addition_and_a_read_each_take_one_round_trip(world: World) -> None:
    counter = spread(world)
    with metered() as adding:
        counter.add(ADA, 1)
        counter.add(ADA, 1)
    with metered() as reading:
        counter.total(ADA)

    assert (adding.consumed.requests, adding.consumed.write_units) == (2, 4)
    assert (reading.consumed.requests, reading.consumed.read_units) == (1, 2)


def test_a_step_of_a_transaction_counts_with_it_or_not_at_all(world: World) -> None:
    counter = spread(world)
    note = Note(tenant="abc", id="1")

    world.transact(Create(note), counter.adding(ADA, 1))
    with pytest.raises(TransactionRefusedError):
        world.transact(Create(note), counter.adding(ADA, 1))

    assert counter.total(ADA) == 1


@pytest.mark.parametrize("there", [False, True])
def test_a_request_sent_twice_is_counted_once(world: World, *, there: bool) -> None:
    counter = spread(world)
    world.drawn = lambda: 0.0
    if there:
        counter.add(ADA, 1)
    rival = counters(world)
    world.faults(meanwhile_repeated("TransactWriteItems", lambda: rival.add(ADA, 10)))
    counters(world).add(ADA, 1)

    assert counter.total(ADA) == 11 + there


def test_conflicts_are_outlasted_and_lost_requests_counted_once(world: World) -> None:
    world.faults(conflict("TransactWriteItems"), lost_request("TransactWriteItems", nth=3))
    counter = spread(world)

    counter.add(ADA, 1)
    counter.add(ADA, 1)

    assert counter.total(ADA) == 2


def test_an_addition_that_cannot_be_settled_is_unknown(world: World) -> None:
    world.faults(lost_request("TransactWriteItems", nth=None))

    with pytest.raises(OutcomeUnknownError):
        spread(world).add(ADA, 1)


def test_two_concurrent_creators_of_a_slot_are_both_counted(world: World) -> None:
    rival = counters(world)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.add(ADA, 10)))
    world.drawn = lambda: 0.0

    counters(world).add(ADA, 1)

    assert spread(world).total(ADA) == 11


def test_concurrent_additions_are_all_counted(world: World) -> None:
    counter = counters(world, slots=2)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: counter.add(ADA, 1), range(60)))

    assert counter.total(ADA, consistent=True) == 60


@pytest.mark.parametrize("slots", [0, 101])
def test_edges_with_too_few_or_too_many_slots_are_refused(slots: int) -> None:
    with pytest.raises(DeclarationError, match=f"has {slots} slots: it can have 1 to 100"):
        Edges(Fan, forward="FAN_OF", backward="FANNED_BY", counts=Followers, slots=(1, slots))
