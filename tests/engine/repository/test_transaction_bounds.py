"""Bounds of sums in transactions: the stored number decides, also while others write it."""

from decimal import Decimal
from typing import Any

import pytest

from dynashard import Create, Update
from dynashard.errors import ExhaustedError, InvalidValueError, TransactionRefusedError
from dynashard.testing.faults import lost_answer, lost_request, meanwhile
from tests.engine.stored_things import Account, Note, World, key, person

pytestmark = pytest.mark.engine


def taking(amount: int, **more: Any) -> Update:
    return Update(Note, key(), add={"reads": -amount}, at_least={"reads": 0}, **more)


def refusal(world: World, *steps: Any) -> ExhaustedError:
    before = world.raw()
    with pytest.raises(TransactionRefusedError) as error:
        world.transact(*steps)
    assert world.raw() == before
    assert error.value.reason == "exhausted"
    assert isinstance(error.value.cause, ExhaustedError)
    return error.value.cause


def test_a_sum_keeps_to_its_bounds_to_the_last_unit(world: World) -> None:
    world.notes.create(Note(tenant="abc", id="1", reads=3))

    world.transact(taking(2))
    found = refusal(world, Create(person()), taking(2))
    world.transact(taking(1))

    assert found.available == 1
    assert "reads is 1, so 2 cannot be taken: it must stay at least 0. Ask for at most 1." in str(found)
    assert world.notes.get(key()).reads == 0
    assert refusal(world, Update(Note, key(), add={"reads": 6}, at_most={"reads": 5})).available == 5


def test_another_revision_refuses_a_sum_that_is_out_of_its_bounds_too(world: World) -> None:
    world.notes.create(Note(tenant="abc", id="1", reads=3))

    with pytest.raises(TransactionRefusedError) as error:
        world.transact(taking(4, if_match="another"))

    assert error.value.reason == "revision_mismatch"


@pytest.mark.parametrize(("start", "amount", "allowed"), [(0, 1, False), (0, -1, True), (None, 1, False)])
def test_a_missing_item_counts_as_zero(world: World, start: int | None, amount: int, *, allowed: bool) -> None:
    if start is not None:
        world.notes.create(Note(tenant="abc", id="1", reads=start))
    step = taking(amount, missing="create")
    if allowed:
        world.transact(step)
        assert world.notes.get(key()).reads == -amount
    else:
        assert refusal(world, step).available == 0


def test_a_missing_item_is_created_within_the_bounds(world: World) -> None:
    world.transact(Update(Note, key(), add={"reads": 5}, at_most={"reads": 5}, missing="create"))

    assert world.notes.get(key()).reads == 5


def test_a_field_that_is_not_stored_counts_as_zero(world: World) -> None:
    world.adopt({"PK": {"S": "test.v1.Note:abc"}, "SK": {"S": "1"}, "tenant": {"S": "abc"}, "id": {"S": "1"}})

    assert refusal(world, taking(1)).available == 0
    world.transact(Update(Note, key(), add={"reads": 2}, at_most={"reads": 2}))

    assert world.only()["reads"] == {"N": "2"}


def test_a_rival_that_takes_the_last_one_in_between_wins(world: World) -> None:
    world.notes.create(Note(tenant="abc", id="1", reads=1))
    rival = World(world.inner, world.table, world.dynamodb)
    world.faults(meanwhile("TransactWriteItems", lambda: rival.transact(taking(1))))

    with pytest.raises(TransactionRefusedError, match="at least 0"):
        world.transact(taking(1))

    assert world.notes.get(key()).reads == 0


@pytest.mark.parametrize("fault", [lost_answer, lost_request])
def test_the_last_one_is_taken_once_when_an_answer_is_lost(world: World, fault: Any) -> None:
    world.notes.create(Note(tenant="abc", id="1", reads=1))
    world.faults(fault("TransactWriteItems"))

    world.transact(taking(1))

    assert world.notes.get(key()).reads == 0


def test_an_item_that_must_be_read_first_keeps_to_bounds_too(world: World) -> None:
    world.accounts.create(Account(id="1", balance=5))
    step = Update(Account, {"id": "1"}, add={"balance": -3}, at_least={"balance": 2}, returns=True)

    world.transact(step)

    assert refusal(world, step).available == 0


def test_a_fraction_is_compared_exactly(world: World) -> None:
    world.people.create(person(credit=Decimal("0.3")))
    step = Update(type(person()), key(), add={"credit": Decimal("-0.1")}, at_least={"credit": Decimal("0.2")})

    world.transact(step)

    assert refusal(world, step).available == 0


def test_a_bound_that_bounds_nothing_is_refused(world: World) -> None:
    with pytest.raises(InvalidValueError, match="nothing is added"):
        world.transact(Update(Note, key(), add={"reads": 1}, at_least={"stars": 0}))
    with pytest.raises(InvalidValueError, match="give a number"):
        world.transact(Update(Note, key(), add={"reads": 1}, at_least={"reads": True}))
