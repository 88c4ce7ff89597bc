"""Each write of a batch has an outcome of its own, which is true whatever becomes of the others."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard.errors import (
    DynashardError,
    EngineUnavailableError,
    InvalidKeyError,
    ItemTooLargeError,
    OutcomeUnknownError,
    ThrottledError,
    UnprocessedError,
)
from dynashard.testing.faults import about, lost_request, throttled, too_large, unreachable
from tests.engine.stored_things import Event, World, key, person

pytestmark = pytest.mark.engine

MANY = [f"{number:02d}" for number in range(30)]


def stored(world: World) -> set[str]:
    return {item["id"]["S"] for item in world.raw()}


def raising(error: DynashardError) -> Callable[..., Any]:
    def read(*_: Any) -> Any:
        raise error

    return read


def codes(outcomes: list[DynashardError | None]) -> list[str | None]:
    return [None if outcome is None else outcome.code for outcome in outcomes]


def test_every_write_that_is_done_is_none(world: World) -> None:
    world.people.create(person(id="old"))

    outcomes = world.people.try_batch_write(put=[person(id="1"), person(id="2")], delete=[key("old"), key("none")])

    assert outcomes == [None, None, None, None]
    assert stored(world) == {"1", "2"}


def test_an_item_that_dynamodb_refuses_does_not_concern_the_others_of_its_request(world: World) -> None:
    world.faults(about('"07"', too_large("BatchWriteItem")))

    outcomes = world.people.try_batch_write(put=[person(id=each) for each in MANY])

    assert codes(outcomes) == ["item_too_large" if each == "07" else None for each in MANY]
    assert stored(world) == {*MANY} - {"07"}


def test_an_error_for_a_batch_names_what_was_refused_and_why(world: World) -> None:
    world.faults(about('"07"', too_large("BatchWriteItem")))

    with pytest.raises(
        UnprocessedError,
        match=r"1 keys of a batch were not written, and some of them cannot be: .* larger than 409600 bytes",
    ) as raised:
        world.people.batch_write(put=[person(id=each) for each in MANY])

    assert raised.value.details == {"keys": [key("07")]}
    assert isinstance(raised.value.__cause__, ItemTooLargeError)
    assert (raised.value.retryable, raised.value.transient) == (False, False)


def test_a_request_that_was_not_sent_does_not_hide_those_that_were(world: World) -> None:
    world.faults(unreachable("BatchWriteItem", nth=2))

    outcomes = world.people.try_batch_write(put=[person(id=each) for each in MANY])

    assert codes(outcomes) == [None] * 25 + ["engine_unavailable"] * 5
    assert stored(world) == {*MANY[:25]}


def test_an_error_names_the_keys_of_a_request_that_was_not_sent(world: World) -> None:
    world.faults(unreachable("BatchWriteItem", nth=2))

    with pytest.raises(UnprocessedError) as raised:
        world.people.batch_write(put=[person(id=each) for each in MANY])

    assert [each["id"] for each in raised.value.keys] == MANY[25:]
    assert isinstance(raised.value.__cause__, EngineUnavailableError)
    assert raised.value.retryable


def test_an_unknown_outcome_names_its_item_and_the_revision_to_look_for(world: World) -> None:
    world.faults(lost_request("BatchWriteItem", nth=1))

    [put, delete] = world.people.try_batch_write(put=[person()], delete=[key("2")])

    assert isinstance(put, OutcomeUnknownError)
    assert isinstance(delete, OutcomeUnknownError)
    assert put.details == {"resend": False, "key": key(), "revision": "rev-1"}
    assert delete.details == {"resend": False, "key": key("2")}


def test_what_cannot_be_stored_is_not_sent_and_stops_nothing(world: World) -> None:
    batch = [person(id="1"), person(id="1"), person(id="2", nickname="x" * 410_000), person(id="3")]
    transport = world.faults()

    with pytest.raises(InvalidKeyError):
        world.people.batch_write(put=batch)
    assert transport.calls == []

    outcomes = world.people.try_batch_write(put=batch, delete=[{"tenant": "abc", "id": ""}])

    assert codes(outcomes) == [None, "invalid_key", "item_too_large", None, "invalid_key"]
    assert stored(world) == {"1", "3"}


@pytest.mark.parametrize(
    ("error", "code"),
    [(ThrottledError("slow down"), "unprocessed"), (EngineUnavailableError("no answer"), "engine_unavailable")],
    ids=["throttled", "unavailable"],
)
@pytest.mark.parametrize("scattered", [False, True])
def test_nothing_is_sent_and_nothing_claimed_if_the_shard_counts_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch, error: DynashardError, code: str, *, scattered: bool
) -> None:
    world.retry_seconds = 0
    monkeypatch.setattr(world.views, "view", raising(error))
    transport = world.faults()

    if scattered:
        outcomes = world.events.try_batch_write(put=[Event(tenant="abc", id="1")], delete=[key("2")])
    else:
        outcomes = world.notes.try_batch_write(delete=[key("1"), key("2")])

    assert codes(outcomes) == [code] * 2
    assert transport.calls == []


def test_an_error_before_the_first_request_is_the_outcome_of_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.views, "index_view", raising(ThrottledError("slow down")))
    transport = world.faults()

    outcomes = world.people.try_batch_write(put=[person(id="1", team="eng", rank=1)], delete=[key("2")])

    assert codes(outcomes) == ["throttled", "throttled"]
    assert transport.calls == []


def test_a_delete_from_two_shards_has_the_least_certain_outcome(world: World) -> None:
    others = [{"tenant": "abc", "id": f"x{number}"} for number in range(24)]
    twice = {"tenant": "abc", "id": "1"}
    world.events.batch_write(put=[Event(**each) for each in others])
    for shard in (0, 3):
        attributes = {name: {"S": value} for name, value in twice.items()}
        world.adopt({"PK": {"S": f"test.v1.Event:abc:{shard}"}, "SK": {"S": "1"}, **attributes})
    transport = world.faults(lost_request("BatchWriteItem", nth=2))

    outcomes = world.events.try_batch_write(delete=[*others, twice])

    assert transport.waiting == []
    assert codes(outcomes) == [None] * 24 + ["outcome_unknown"]
    assert [item["PK"]["S"] for item in world.raw()] == ["test.v1.Event:abc:3"]


def test_what_is_left_of_a_batch_is_reported_with_what_failed(world: World) -> None:
    world.retry_seconds = 0
    world.faults(throttled("BatchWriteItem", nth=1), unreachable("BatchWriteItem", nth=2))

    outcomes = world.people.try_batch_write(put=[person(id=each) for each in MANY])

    assert codes(outcomes) == ["unprocessed"] * 25 + ["engine_unavailable"] * 5
    assert isinstance(outcomes[0], UnprocessedError)
    assert outcomes[0].details == {"keys": [key("00")]}
    assert isinstance(outcomes[0].__cause__, ThrottledError)
