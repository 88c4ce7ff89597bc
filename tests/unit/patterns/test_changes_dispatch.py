"""Dispatch of batches to consumers: retries of transient errors, and dead letters for all others."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard import Entity, Key, Registry
from dynashard.errors import (
    ConfigurationError,
    DynashardError,
    EngineError,
    EngineUnavailableError,
    InvalidValueError,
    ThrottledError,
    WriteContendedError,
)
from dynashard_patterns import Change, Consumer
from dynashard_patterns.changes import DeadLetter, Dispatcher

pytestmark = pytest.mark.unit

_REGISTRY = Registry()


class Note(Entity, name="dispatch.v1.Note", key=Key("{tenant}", "{id}", unpadded=["id"]), registry=_REGISTRY):
    tenant: str
    id: int


class Memo(Entity, name="dispatch.v1.Memo", key=Key("{tenant}", "{id}", unpadded=["id"]), registry=_REGISTRY):
    tenant: str
    id: int


def record(number: int, entity: str = "dispatch.v1.Note") -> dict[str, Any]:
    fields = {"tenant": {"S": "t"}, "id": {"N": str(number)}, "Type": {"S": entity}, "Rev": {"S": "r"}}
    image = {"PK": {"S": f"{entity}:t"}, "SK": {"S": str(number)}, **fields}
    return {"eventName": "INSERT", "dynamodb": {"SequenceNumber": sequence(number), "NewImage": image}}


def sequence(number: int) -> str:
    return str(number).zfill(21)


class Hearer:
    """A consumer that keeps the changes that it has handled, and fails at chosen ones."""

    def __init__(
        self, stumble: Callable[[int], Exception | None] = lambda _: None, entity: type[Entity] = Note
    ) -> None:
        self.handled: list[int] = []
        self.batches: list[list[int]] = []
        self._stumble = stumble
        self.consumer = Consumer("hearer", (entity,), self._handle)

    def _handle(self, changes: Sequence[Change[Any]]) -> None:
        self.batches.append([change.key["id"] for change in changes])
        for number in self.batches[-1]:
            error = self._stumble(number)
            if error is not None:
                raise error
        self.handled += self.batches[-1]


def at(numbers: set[int], error: Exception) -> Callable[[int], Exception | None]:
    return lambda number: error if number in numbers else None


THROTTLED = ThrottledError("busy", operation="PutItem", aws_code="ThrottlingException")


def test_each_consumer_of_an_entity_gets_the_batch_in_one_call() -> None:
    notes, both, memos = Hearer(), Hearer(), Hearer(entity=Memo)
    everything = Consumer("both", (Note, Memo), both.consumer.handle)
    dispatcher = Dispatcher([notes.consumer, everything, memos.consumer], keep=_never)

    outcome = dispatcher.dispatch([record(1), record(2, "dispatch.v1.Memo"), record(3), record(4, "else")])

    assert (notes.batches, both.batches, memos.batches) == ([[1, 3]], [[1, 2, 3]], [[2]])
    assert (outcome.again, outcome.changes, outcome.dead_letters) == (None, 3, 0)


def test_a_batch_without_relevant_changes_calls_no_consumer() -> None:
    hearer = Hearer()

    outcome = Dispatcher([hearer.consumer], keep=_never).dispatch([record(1, "else")])

    assert (hearer.batches, outcome.again, outcome.changes) == ([], None, 0)


@pytest.mark.parametrize(
    "error",
    [
        THROTTLED,
        EngineUnavailableError("gone", operation="Query"),
        EngineError("no rights", operation="Query"),
        WriteContendedError("contended"),
        ConfigurationError("no table"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_transient_error_returns_the_whole_batch(error: Exception) -> None:
    hearer = Hearer(at({3}, error))

    outcome = Dispatcher([hearer.consumer], keep=_never).dispatch([record(number) for number in range(1, 6)])

    assert outcome.again == sequence(1)
    assert type(error).__name__ in outcome.reason
    assert hearer.batches == [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    "error", [InvalidValueError("bad"), DynashardError("bad"), KeyError("bad")], ids=lambda error: type(error).__name__
)
def test_a_failing_change_becomes_a_dead_letter_and_all_others_are_handled(error: Exception) -> None:
    hearer = Hearer(at({4}, error))
    letters: list[DeadLetter] = []

    outcome = Dispatcher([hearer.consumer], keep=letters.append).dispatch([record(number) for number in range(1, 101)])

    assert sorted(set(hearer.handled)) == [number for number in range(1, 101) if number != 4]
    assert [(letter.consumer, letter.sequence) for letter in letters] == [("hearer", sequence(4))]
    assert "bad" in letters[0].reason
    assert (outcome.again, outcome.dead_letters) == (None, 1)
    assert len(hearer.batches) <= 15


def test_an_unreadable_record_becomes_a_dead_letter() -> None:
    hearer = Hearer()
    letters: list[DeadLetter] = []
    bad = record(2)
    bad["dynamodb"]["NewImage"]["id"] = {"S": "two"}

    outcome = Dispatcher([hearer.consumer], keep=letters.append).dispatch([record(1), bad, record(3)])

    assert hearer.batches == [[1, 3]]
    assert [(letter.consumer, letter.sequence) for letter in letters] == [(None, sequence(2))]
    assert outcome.again is None


def test_a_dead_letter_that_cannot_be_stored_is_delivered_again() -> None:
    hearer = Hearer(at({2}, KeyError("bad")))

    outcome = Dispatcher([hearer.consumer], keep=_full).dispatch([record(1), record(2), record(3)])

    assert outcome.again == sequence(2)
    assert "cannot be kept" in outcome.reason


def test_the_consumer_with_the_least_progress_decides() -> None:
    early, late = Hearer(at({2}, THROTTLED), entity=Memo), Hearer(at({4}, THROTTLED))
    records = [record(1), record(2, "dispatch.v1.Memo"), record(3), record(4)]

    assert Dispatcher([late.consumer], keep=_never).dispatch(records).again == sequence(1)
    assert Dispatcher([early.consumer], keep=_never).dispatch(records).again == sequence(2)
    assert Dispatcher([early.consumer, late.consumer], keep=_never).dispatch(records).again == sequence(1)
    assert Dispatcher([early.consumer, Hearer().consumer], keep=_never).dispatch(records).again == sequence(2)


@given(
    poison=st.sets(st.integers(0, 30)),
    hindered=st.sets(st.integers(0, 30), max_size=3),
    count=st.integers(0, 30),
)
def test_every_change_is_handled_or_becomes_a_dead_letter_once(
    poison: set[int], hindered: set[int], count: int
) -> None:
    """As with Lambda, records are delivered again from the failed one. Transient errors end after a while."""
    in_the_way = set(hindered)

    def stumble(number: int) -> Exception | None:
        if number in in_the_way:
            in_the_way.discard(number)
            return THROTTLED
        return KeyError(number) if number in poison else None

    hearer = Hearer(stumble)
    letters: dict[str, DeadLetter] = {}
    dispatcher = Dispatcher([hearer.consumer], keep=lambda letter: letters.update({letter.sequence: letter}))
    records = [record(number) for number in range(count)]
    for _ in range(len(hindered) + 1):
        outcome = dispatcher.dispatch(records)
        numbers = [each["dynamodb"]["SequenceNumber"] for each in records]
        records = [] if outcome.again is None else records[numbers.index(outcome.again) :]

    assert records == []
    assert set(hearer.handled) == set(range(count)) - poison
    assert set(letters) == {sequence(number) for number in poison if number < count}


def _never(letter: DeadLetter) -> None:
    raise AssertionError(letter)


def _full(_letter: DeadLetter) -> None:
    raise OSError("the queue is gone")
