"""Counters: within their bounds to the last unit, exactly once, and read at one moment."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import pytest

from dynashard import Create, Key, Registry, Shards
from dynashard.errors import (
    DeclarationError,
    ExhaustedError,
    InvalidKeyError,
    InvalidQueryError,
    InvalidValueError,
    OutcomeUnknownError,
    ThrottledError,
    TransactionConflictError,
    TransactionRefusedError,
    UndecodableItemError,
)
from dynashard.testing.faults import conflict, lost_answer, lost_request, meanwhile, throttled
from dynashard.topology import Phase
from dynashard.transport import metered
from dynashard_patterns import Counter
from dynashard_patterns.counters.shares import LIMIT
from tests.engine.patterns.counter_world import KEY, Likes, Seats, Stock, counters, require_sound, view
from tests.engine.stored_things import Note, World

pytestmark = pytest.mark.engine


def part(number: int, of: int = 4) -> Callable[[], float]:
    """Draw one part always."""
    return lambda: (number + 0.5) / of


def turns(world: World, *numbers: int) -> None:
    drawn = cycle([(number + 0.5) / 4 for number in numbers])
    world.drawn = lambda: next(drawn)


def test_a_counter_begins_at_zero_and_is_the_sum_of_its_parts(world: World) -> None:
    turns(world, 0, 1, 2, 3)
    stock = counters(world, Stock)

    assert stock.value(KEY) == 0
    for amount in range(1, 6):
        stock.add(KEY, amount)
    stock.add({**KEY, "id": "2"})

    assert (stock.value(KEY), stock.value(KEY, approximate=True)) == (15, 15)
    require_sound(world, Stock, 15, parts=5)


def test_a_take_from_a_part_with_too_little_borrows_from_the_others(world: World) -> None:
    stock = counters(world, Stock)
    world.drawn = part(0)
    counters(world, Stock).add(KEY, 100)
    world.drawn = part(3)

    stock = counters(world, Stock)
    stock.take(KEY, 10)

    # Half of the difference came along, so that the next takes find some at both.
    assert stock.parts(KEY).numbers("value") == [45, 0, 0, 45]
    require_sound(world, Stock, 90)


@pytest.mark.parametrize("parts", [1, 4])
def test_the_last_unit_is_taken_and_not_one_more(world: World, parts: int) -> None:
    world.views.now = view(parts)
    turns(world, 0, 1, 2, 3, 1)
    stock = counters(world, Stock)
    stock.add(KEY, 7)
    for amount in (2, 1, 2):
        stock.take(KEY, amount)

    with pytest.raises(ExhaustedError, match=r"3 cannot be taken, because the floor of .* is 0: at most 2") as error:
        stock.take(KEY, 3)
    stock.take(KEY, 2)

    assert error.value.available == 2
    with pytest.raises(ExhaustedError, match="at most 0"):
        stock.take(KEY)
    require_sound(world, Stock, 0)


def test_a_counter_without_a_unit_refuses_before_it_has_parts(world: World) -> None:
    with pytest.raises(ExhaustedError):
        counters(world, Stock).take(KEY)

    assert world.raw() == []


def test_floor_and_ceiling_hold_at_once(world: World) -> None:
    turns(world, 0, 3, 1, 2)
    seats = counters(world, Seats)

    seats.add(KEY, 6)
    seats.add(KEY, 4)
    with pytest.raises(ExhaustedError, match=r"1 cannot be added, because the ceiling of .* is 10: at most 0"):
        seats.add(KEY)
    require_sound(world, Seats, 10)
    seats.take(KEY, 12)
    with pytest.raises(ExhaustedError, match=r"floor of .* is -2"):
        seats.take(KEY)
    require_sound(world, Seats, -2)
    seats.add(KEY, 12)

    require_sound(world, Seats, 10)


def test_without_bounds_a_counter_goes_any_way(world: World) -> None:
    world.views.now = view(2)
    likes = counters(world, Likes)

    likes.take(KEY, 5)
    likes.add(KEY, 2)

    require_sound(world, Likes, -3)


def test_steps_are_done_with_it_or_not_at_all(world: World) -> None:
    stock, note = counters(world, Stock), Note(tenant="abc", id="1")
    stock.add(KEY, 3)

    stored = stock.take(KEY, 1, Create(note))
    with pytest.raises(TransactionRefusedError) as refused:
        stock.take(KEY, 1, Create(note))
    with pytest.raises(ExhaustedError):
        stock.take(KEY, 5, Create(Note(tenant="abc", id="2")))

    assert stored == [world.notes.get({"tenant": "abc", "id": "1"})]
    assert (refused.value.step, refused.value.reason) == (0, "already_exists")
    assert world.notes.find({"tenant": "abc", "id": "2"}) is None
    require_sound(world, Stock, 2)


def test_steps_are_done_also_when_a_part_must_borrow(world: World) -> None:
    turns(world, 0, 3)
    stock = counters(world, Stock)
    stock.add(KEY, 3)

    stock.take(KEY, 2, Create(Note(tenant="abc", id="1")))

    assert world.notes.exists({"tenant": "abc", "id": "1"})
    require_sound(world, Stock, 1)


def test_changes_and_reads_cost_what_the_docs_say(world: World) -> None:
    world.drawn = part(0)
    stock = counters(world, Stock)
    with metered() as adding:
        stock.add(KEY, 10)
    with metered() as exact:
        stock.value(KEY)
    with metered() as cheap:
        stock.value(KEY, approximate=True)
    with metered() as refused, pytest.raises(ExhaustedError):
        stock.take(KEY, 11)
    world.views.now = view(1)
    with metered() as single:
        stock.value(KEY)

    assert (adding.consumed.requests, adding.consumed.write_units) == (1, 2)
    assert (exact.consumed.requests, exact.consumed.read_units) == (1, 8)
    assert (cheap.consumed.requests, cheap.consumed.read_units) == (1, 2)
    # A refused transaction is not metered.
    assert (refused.consumed.requests, refused.consumed.read_units) == (2, 12)
    assert (single.consumed.requests, single.consumed.read_units) == (1, 1)


@pytest.mark.parametrize("fault", [lost_answer, lost_request])
@pytest.mark.parametrize("borrows", [False, True])
def test_a_lost_answer_takes_once(world: World, fault: Any, *, borrows: bool) -> None:
    world.drawn = part(0)
    counters(world, Stock).add(KEY, 4)
    world.drawn = part(2 if borrows else 0)
    world.faults(fault("TransactWriteItems", nth=2 if borrows else 1))

    counters(world, Stock).take(KEY, 3)

    require_sound(world, Stock, 1)


def test_a_change_that_cannot_be_settled_is_unknown(world: World) -> None:
    world.faults(lost_request("TransactWriteItems", nth=None))

    with pytest.raises(OutcomeUnknownError):
        counters(world, Stock).add(KEY)


def test_a_rival_that_takes_what_was_to_be_borrowed_leaves_a_true_refusal(world: World) -> None:
    world.drawn = part(0)
    counters(world, Stock).add(KEY, 5)
    rival = counters(world, Stock)
    world.drawn = part(1)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.take(KEY, 5), nth=2))

    with pytest.raises(ExhaustedError):
        counters(world, Stock).take(KEY, 3)

    require_sound(world, Stock, 0)


def test_a_refusal_is_decided_at_one_moment(world: World) -> None:
    """Half of it wanders from part 3 to part 0, which was read before: the sum that was read is too small."""
    world.drawn = part(3)
    stock = counters(world, Stock)
    stock.add(KEY, 4)
    sent = world.faults()

    with pytest.raises(ExhaustedError):
        counters(world, Stock).take(KEY, 5)

    assert [call.operation for call in sent.calls] == ["TransactWriteItems", "BatchGetItem", "TransactGetItems"]


def test_a_throttled_part_leaves_the_change_to_another(world: World) -> None:
    turns(world, 0, 1)
    world.faults(*(throttled("TransactWriteItems", nth=nth) for nth in range(1, 5)))

    counters(world, Stock).add(KEY, 3)

    assert world.throttles[0][:2] == ("test.v1.Stock", "test.v1.Stock:abc:1")
    require_sound(world, Stock, 3, parts=1)


def test_what_stays_throttled_or_contended_did_nothing(world: World) -> None:
    world.faults(throttled("TransactWriteItems", nth=None))
    with pytest.raises(ThrottledError):
        counters(world, Stock).add(KEY)
    world.faults(conflict("TransactWriteItems", nth=None))
    with pytest.raises(TransactionConflictError):
        counters(world, Stock).add(KEY)
    world.faults()

    require_sound(world, Stock, 0, parts=0)


def test_a_read_that_conflicts_with_a_change_is_repeated(world: World) -> None:
    counters(world, Stock).add(KEY, 3)
    world.faults(conflict("TransactGetItems"), throttled("TransactGetItems", nth=2))

    assert counters(world, Stock).value(KEY) == 3


def test_a_read_that_stays_contended_says_so(world: World) -> None:
    world.faults(conflict("TransactGetItems", nth=None))

    with pytest.raises(TransactionConflictError):
        counters(world, Stock).value(KEY)


def test_readers_know_a_part_before_writers_use_it(world: World) -> None:
    world.drawn = lambda: 0.999
    world.views.now = view(2, target=4, phase=Phase.PREPARE)
    counters(world, Likes).add(KEY, 1)
    assert counters(world, Likes).parts(KEY).numbers("value") == [0, 1, 0, 0]

    # Another process knows the end of it already, and this one does not.
    world.views.now = view(4)
    counters(world, Likes).add(KEY, 10)
    world.views.now = view(2, target=4, phase=Phase.PREPARE)

    assert counters(world, Likes).value(KEY) == 11


def test_an_answer_after_the_end_of_the_view_is_not_believed(world: World) -> None:
    world.views.now = view(1, expires=world.clock.at + 1)
    counters(world, Stock).add(KEY, 1)

    def grow() -> None:
        world.clock.at += 2
        world.views.now = view(2)
        world.drawn = part(1, 2)
        rival = counters(World(world.inner, world.table, world.dynamodb, views=world.views, drawn=part(1, 2)), Stock)
        rival.add(KEY, 6)

    world.faults(meanwhile("BatchGetItem", grow))

    assert counters(world, Stock).value(KEY) == 7


def test_a_refusal_after_the_end_of_the_view_is_not_believed(world: World) -> None:
    world.views.now = view(1, expires=world.clock.at + 1)
    counters(world, Stock).add(KEY, 1)

    def grow() -> None:
        world.views.now = view(2)
        rival = World(world.inner, world.table, world.dynamodb, views=world.views, drawn=part(1, 2))
        counters(rival, Stock).add(KEY, 6)
        world.clock.at += 2

    world.faults(meanwhile("TransactWriteItems", grow))
    world.drawn = part(0)

    counters(world, Stock).take(KEY, 5)

    require_sound(world, Stock, 2)


def test_a_deleted_counter_begins_again(world: World) -> None:
    turns(world, 0, 2)
    stock = counters(world, Stock)
    stock.add(KEY, 3)
    stock.add(KEY, 4)
    rival = counters(world, Stock)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.add(KEY, 1)))

    assert counters(world, Stock).delete(KEY) == 8
    assert world.raw() == []
    assert stock.value(KEY) == 0
    assert stock.delete(KEY) == 0


def test_a_part_that_another_change_stores_first_is_deleted_too(world: World) -> None:
    turns(world, 0, 1)
    stock = counters(world, Stock)
    stock.add(KEY, 3)
    rival = counters(world, Stock)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.add(KEY, 1)))

    assert counters(world, Stock).delete(KEY) == 4
    assert world.raw() == []


def test_concurrent_takes_never_pass_the_floor(world: World) -> None:
    world.views.now = view(4)
    stock = counters(world, Stock)
    stock.add(KEY, 40)

    def take(_: int) -> int:
        try:
            stock.take(KEY)
        except ExhaustedError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(take, range(60)))

    assert taken == 40
    require_sound(world, Stock, 0)


@pytest.mark.parametrize("amount", [0, -1, True, 1.0, "1", None, LIMIT + 1])
def test_an_amount_that_cannot_be_counted_is_refused(world: World, amount: Any) -> None:
    for change in (counters(world, Stock).add, counters(world, Stock).take):
        with pytest.raises(InvalidValueError, match="whole number from 1") as error:
            change(KEY, amount)
        assert error.value.field == "amount"
    assert world.raw() == []


def test_a_sum_of_more_than_38_digits_is_refused(world: World) -> None:
    world.views.now = view(1)
    likes = counters(world, Likes)
    likes.add(KEY, LIMIT)

    with pytest.raises(InvalidValueError, match="38 digits"):
        likes.add(KEY)

    require_sound(world, Likes, LIMIT)


def test_a_key_that_is_no_counters_is_refused(world: World) -> None:
    stock = counters(world, Stock)
    with pytest.raises(InvalidKeyError, match="part is chosen"):
        stock.add({**KEY, "part": 1})
    with pytest.raises(InvalidKeyError, match="id"):
        stock.value({"tenant": "abc"})
    with pytest.raises(InvalidKeyError, match=r"is 'sku'; write its fields, \{'tenant': \.\.\., 'id': \.\.\.\}"):
        stock.value("sku")  # type: ignore[arg-type]


def test_an_item_in_place_of_a_step_is_refused_before_anything_is_taken(world: World) -> None:
    stock = counters(world, Stock)
    stock.add(KEY, 2)

    with pytest.raises(InvalidQueryError, match="is a Likes; write Create"):
        stock.take(KEY, 1, Likes(**KEY))  # type: ignore[arg-type]

    assert stock.value(KEY) == 2


def test_a_row_of_another_program_under_the_key_of_a_part_is_left_as_it_is(world: World) -> None:
    stock = counters(world, Stock)
    stock.add(KEY, 5)
    [part_of_ours] = world.raw()
    theirs = {"PK": part_of_ours["PK"], "SK": part_of_ours["SK"], "Type": {"S": "lock.v1.Lock"}, "value": {"N": "3"}}
    world.dynamodb.call("PutItem", TableName=world.table, Item=theirs)

    for change in (stock.add, stock.take):
        with pytest.raises(UndecodableItemError, match=r"Type is .*lock\.v1\.Lock|Field required"):
            change(KEY, 1)

    assert world.raw() == [theirs]


DECLARED: list[tuple[str, dict[str, Any]]] = [
    ("floor is 1; it must be at most 0", {"floor": 1}),
    ("ceiling is -1; it must be at least 0", {"ceiling": -1}),
    ("floor is True", {"floor": True}),
    ("ceiling is 1.5", {"ceiling": 1.5}),
    ("whose shards are its parts", {"shards": Shards(4, placement="random")}),
    ("at most 64 parts", {"shards": Shards(4, max=128)}),
    ("sort key is that of its parts", {"key": Key(partition="{tenant}", sort="{id}")}),
    ("has no expires", {"expires": "until"}),
    ("id is not a part of its key", {"key": Key(partition="{tenant}")}),
    ("needs both a name and a key", {"key": None}),
]


@pytest.mark.parametrize(("message", "declared"), DECLARED, ids=[message for message, _ in DECLARED])
def test_a_wrong_counter_is_refused_when_it_is_declared(message: str, declared: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"name": "test.v1.Wrong", "key": Key(partition="{tenant}:{id}"), **declared}
    with pytest.raises(DeclarationError, match=message):

        class Wrong(Counter, registry=Registry(), **arguments):
            tenant: str
            id: str
