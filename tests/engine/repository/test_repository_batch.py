"""Batches on the real engine: order, retries of unprocessed items, and errors that name them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynashard import Entity, Key, Registry
from dynashard.errors import (
    EngineUnavailableError,
    InvalidKeyError,
    ItemTooLargeError,
    OutcomeUnknownError,
    UndecodableItemError,
    UnprocessedError,
)
from dynashard.testing.faults import Fault, afterwards, lost_answer, lost_request, throttled, unprocessed
from dynashard.transport import metered
from tests.engine.stored_things import NOON, Note, World, key, person

pytestmark = pytest.mark.engine


def test_items_are_returned_in_the_order_of_their_keys(world: World) -> None:
    world.people.batch_write(put=[person(id=str(number), visits=number) for number in range(120)])
    asked = [key(str(number)) for number in (119, 5, 500, 0, 5, *range(119))]
    transport = world.faults()

    found = world.people.batch_get(asked, consistent=True)

    assert [item and item.visits for item in found] == [119, 5, None, 0, 5, *range(119)]
    assert [len(call.request["RequestItems"][world.table]["Keys"]) for call in transport.calls] == [100, 21]
    assert all(call.request["RequestItems"][world.table]["ConsistentRead"] for call in transport.calls)


class Plain(Entity, name="test.v1.Plain", key=Key(partition="{tenant}", sort="{id}"), registry=Registry()):
    """An entity that is read from the bytes of an answer."""

    tenant: str
    id: str
    whole: int = 0


@pytest.mark.parametrize("fault", [None, throttled("BatchGetItem"), unprocessed("BatchGetItem", keep=2)])
def test_items_of_a_batch_are_those_that_single_gets_return(world: World, fault: Fault | None) -> None:
    made = [world.of(Plain).create(Plain(tenant="abc", id=str(number), whole=number)) for number in range(5)]
    world.of(Plain).replace(made[1])
    stored = {each["SK"]["S"]: each for each in world.raw()}
    world.adopt({**stored["2"], "whole": {"N": "2.0"}, "other": {"L": [{"S": "a"}]}})
    world.adopt({**stored["3"], "ExpiresAt": {"N": "1"}})
    world.adopt({name: value for name, value in stored["4"].items() if name not in ("Type", "Rev")})
    asked = [key(each) for each in "3172045"]
    alone = [world.of(Plain).find(each, consistent=True) for each in asked]
    transport = world.faults(*[each for each in [fault] if each])

    found = world.of(Plain).batch_get(asked, consistent=True)

    def seen(item: Plain | None) -> Any:
        return item and (repr(item), item.model_fields_set, item.revision, type(item.revision))

    assert list(map(seen, found)) == list(map(seen, alone))
    assert [item and item.whole for item in found] == [None, 1, None, 2, 0, 4, None]
    assert transport.waiting == []


def test_an_item_of_a_batch_that_cannot_be_decoded_is_left_out_and_named(world: World) -> None:
    items = world.of(Plain)
    items.create(Plain(tenant="abc", id="1"))
    world.adopt({**world.only(), "whole": {"S": "many"}})
    items.create(Plain(tenant="abc", id="2"))

    found = items.batch_get([key(), {**key(), "id": "3"}, {**key(), "id": "2"}])

    assert [item and item.id for item in found] == [None, None, "2"]
    assert [left.sort_key for left in found.undecodable] == ["1"]
    assert found.left_out[0] is found.undecodable[0]
    with pytest.raises(UndecodableItemError, match="whole"):
        items.batch_get([key()], strict=True)


def test_a_key_that_is_asked_for_twice_has_two_items(world: World) -> None:
    items = world.of(Plain)
    items.create(Plain(tenant="abc", id="1"))

    first, second = items.batch_get([key(), key()])

    assert first == second
    assert first is not second


def test_an_empty_batch_sends_nothing(world: World) -> None:
    transport = world.faults()

    assert world.people.batch_get([]) == []
    world.people.batch_write()

    assert transport.calls == []


def test_batch_stores_items_as_single_writes_do(world: World) -> None:
    world.people.batch_write(put=[person(team="eng", rank=3, until=NOON + timedelta(days=1))])
    in_batch = world.only()
    world.people.replace(person(team="eng", rank=3, until=NOON + timedelta(days=1)))

    replaced = world.only()
    assert replaced.pop("Prev") == replaced.pop("Born") == in_batch["Rev"]
    assert {**replaced, "Rev": in_batch["Rev"]} == in_batch
    assert world.entries("GSI2") == [("test.v1.Person:abc:eng:1", "003")]


def test_batch_keeps_the_creation_stamp_of_items_that_were_read(world: World) -> None:
    world.people.create(person())
    world.clock.at += 60

    world.people.batch_write(put=[world.people.get(key()), person(id="2")])

    made = [item and item.made for item in world.people.batch_get([key(), key("2")])]
    assert made == [NOON, NOON + timedelta(minutes=1)]


def test_a_batch_writes_25_at_a_time_and_deletes_existing_and_missing_items(world: World) -> None:
    world.people.batch_write(put=[person(id=str(number)) for number in range(30)])
    transport = world.faults()

    world.people.batch_write(put=[person(id="new")], delete=[key(str(number)) for number in range(40)], whole=True)

    assert [len(call.request["RequestItems"][world.table]) for call in transport.calls] == [25, 16]
    assert [item["id"]["S"] for item in world.raw()] == ["new"]


def test_batch_that_names_a_key_twice_is_refused(world: World) -> None:
    transport = world.faults()
    for batch in (
        {"put": [person(), person(mail="b@x.org")]},
        {"delete": [key(), key()]},
        {"put": [person()], "delete": [key()]},
        {"put": [person()], "delete": [person()]},
    ):
        with pytest.raises(InvalidKeyError, match="id='1' appears twice in this batch; send it once"):
            world.people.batch_write(**batch)

    assert transport.calls == []


def test_unprocessed_writes_are_sent_again_with_growing_pauses(world: World) -> None:
    plan = [unprocessed("BatchWriteItem", keep=keep, nth=nth) for nth, keep in ((1, 9), (2, 8), (3, 1))]
    transport = world.faults(*plan)

    world.people.batch_write(put=[person(id=str(number)) for number in range(10)], whole=True)

    assert transport.waiting == []
    assert len(world.raw()) == 10
    assert [len(call.request["RequestItems"][world.table]) for call in transport.calls] == [10, 9, 8, 1]
    assert world.pauses == [0.025, 0.05, 0.1]


def test_unprocessed_keys_are_read_again(world: World) -> None:
    world.people.batch_write(put=[person(id=str(number)) for number in range(10)])
    transport = world.faults(*[unprocessed("BatchGetItem", keep=keep, nth=nth) for nth, keep in ((1, 10), (2, 3))])

    found = world.people.batch_get([key(str(number)) for number in range(10)], consistent=True)

    assert [item and item.id for item in found] == [str(number) for number in range(10)]
    assert transport.waiting == []
    requests = [call.request["RequestItems"][world.table] for call in transport.calls]
    assert [len(request["Keys"]) for request in requests] == [10, 10, 3]
    assert [request["ConsistentRead"] for request in requests] == [True, True, True]


def test_throttled_batches_are_sent_again(world: World) -> None:
    transport = world.faults(throttled("BatchWriteItem", nth=2), throttled("BatchGetItem", nth=1))

    world.people.batch_write(put=[person(id=str(number)) for number in range(60)])
    found = world.people.batch_get([key(str(number)) for number in range(60)])

    assert transport.waiting == []
    assert [item and item.id for item in found] == [str(number) for number in range(60)]
    assert len(world.pauses) == 2


def test_pauses_grow_to_their_bound_and_end_at_the_deadline(world: World) -> None:
    world.retry_seconds = 20
    world.faults(unprocessed("BatchWriteItem", keep=1, nth=None))

    with pytest.raises(UnprocessedError):
        world.people.batch_write(put=[person()])

    assert world.pauses[:8] == [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.5]
    assert set(world.pauses[8:]) == {2.5}
    assert 17.5 < sum(world.pauses) <= 20


@pytest.mark.parametrize("cause", ["left over", "throttled"])
def test_unprocessed_keys_are_named_as_the_caller_names_them(world: World, cause: str) -> None:
    world.people.create(person(id="gone"))
    faults = [unprocessed("BatchWriteItem", keep=2, nth=None), unprocessed("BatchGetItem", keep=2, nth=None)]
    if cause == "throttled":
        faults = [throttled("BatchWriteItem", nth=None), throttled("BatchGetItem", nth=None)]
    transport = world.faults(*faults)

    with pytest.raises(UnprocessedError, match="left 2 keys of a batch unprocessed; send these again later") as written:
        world.people.batch_write(put=[person()], delete=[key("gone")], whole=True)
    with pytest.raises(UnprocessedError, match="left 2 keys") as read:
        world.people.batch_get([key("gone"), person()])

    assert written.value.details == {"keys": [key(), key("gone")]}
    assert read.value.details == {"keys": [key("gone"), key()]}
    assert (written.value.operation, read.value.operation) == ("BatchWriteItem", "BatchGetItem")
    assert (written.value.__cause__ is not None) is (cause == "throttled")
    assert transport.waiting == []


def test_keys_that_are_not_text_are_named_in_json(world: World) -> None:
    class Reading(Entity, name="test.v1.Reading", key=Key(partition="{meter}", sort="{at}"), registry=Registry()):
        meter: int
        at: datetime

    world.faults(unprocessed("BatchWriteItem", keep=1, nth=None))

    with pytest.raises(UnprocessedError) as left:
        world.of(Reading).batch_write(put=[Reading(meter=7, at=datetime(2026, 1, 1, tzinfo=UTC))])

    assert left.value.details == {"keys": [{"meter": 7, "at": "2026-01-01T00:00:00.000000Z"}]}


def test_other_failures_of_a_batch_are_raised_at_once(world: World) -> None:
    world.faults(lost_request("BatchWriteItem"), lost_request("BatchGetItem", nth=2))

    with pytest.raises(OutcomeUnknownError) as raised:
        world.people.batch_write(put=[person()], delete=[key("2")], whole=True)
    with pytest.raises(EngineUnavailableError):
        world.people.batch_get([key()])

    assert raised.value.details == {"resend": False, "keys": [key(), key("2")]}

    assert world.pauses == []


def test_puts_of_a_batch_whose_answer_was_lost_are_done_if_they_are_stored(world: World) -> None:
    transport = world.faults(lost_answer("BatchWriteItem"))

    world.people.batch_write(put=[person(), person(id="2")])

    assert transport.sent("BatchWriteItem") == 1
    assert len(world.raw()) == 2


def test_a_throttled_part_of_a_batch_does_not_repeat_the_others(world: World) -> None:
    plain = world.people

    def other() -> None:
        plain.update(key("01"), set={"mail": "other@x.org"})

    transport = world.faults(afterwards("BatchWriteItem", other, nth=1), throttled("BatchWriteItem", nth=2))

    world.people.batch_write(put=[person(id=f"{number:02d}") for number in range(30)])

    assert transport.sent("BatchWriteItem") == 3
    assert len(transport.calls[-1].request["RequestItems"][world.table]) == 5
    assert plain.get(key("01")).mail == "other@x.org"


def test_a_batch_distinguishes_lost_writes_from_unsent_ones(world: World) -> None:
    world.retry_seconds = 0
    world.faults(lost_request("BatchWriteItem", nth=1), throttled("BatchWriteItem", nth=2))

    with pytest.raises(OutcomeUnknownError) as raised:
        world.people.batch_write(put=[person(id=f"{number:02d}") for number in range(30)])

    assert [each["id"] for each in raised.value.keys] == [f"{number:02d}" for number in range(25)]
    assert [each["id"] for each in raised.value.unprocessed] == [f"{number:02d}" for number in range(25, 30)]


def test_batches_cost_as_much_as_single_requests(world: World) -> None:
    notes = [Note(tenant="a", id=str(n), text="x" * 1500) for n in range(50)]
    with metered() as written:
        world.notes.batch_write(put=notes, whole=True)
    with metered() as again:
        world.notes.batch_write(put=notes)
    with metered() as read:
        world.notes.batch_get([{"tenant": "a", "id": str(n)} for n in range(50)])

    assert (written.consumed.write_units, written.consumed.read_units, written.consumed.requests) == (100, 0, 2)
    assert (again.consumed.write_units, again.consumed.read_units, again.consumed.requests) == (100, 50, 3)
    assert (read.consumed.read_units, read.consumed.requests) == (25, 1)


def test_items_that_cannot_be_read_are_not_written(world: World) -> None:
    world.people.create(person(id="gone"))
    transport = world.faults(throttled("BatchGetItem", nth=None))

    outcomes = world.people.try_batch_write(put=[person(), person(id="2")], delete=[key("gone")])

    assert outcomes[2] is None
    assert [error and error.details for error in outcomes[:2]] == [{"keys": [key()]}, {"keys": [key("2")]}]
    assert all("so it was not written" in str(error) for error in outcomes[:2])
    assert world.raw() == []
    assert transport.sent("BatchWriteItem") == 1
    assert len(world.throttles) == 1


def test_a_batch_without_an_answer_to_its_reads_writes_no_item(world: World) -> None:
    world.faults(lost_request("BatchGetItem", nth=None))

    outcomes = world.people.try_batch_write(put=[person()])

    assert [type(error) for error in outcomes] == [EngineUnavailableError]
    assert world.raw() == []


def test_a_batch_that_replaces_whole_items_keeps_nothing(world: World) -> None:
    world.notes.create(Note(tenant="a", id="1"))
    world.adopt({**world.only(), "Newer": {"S": "field"}})

    world.notes.batch_write(put=[Note(tenant="a", id="1")], whole=True)

    assert "Newer" not in world.only()


def test_a_batch_refuses_an_item_that_does_not_fit_with_what_it_keeps(world: World) -> None:
    world.notes.create(Note(tenant="a", id="1"))
    world.adopt({**world.only(), "Newer": {"S": "x" * 200_000}})

    large, small = Note(tenant="a", id="1", text="x" * 300_000), Note(tenant="a", id="2")
    outcomes = world.notes.try_batch_write(put=[large, small])

    assert [type(error) for error in outcomes] == [ItemTooLargeError, type(None)]
    assert [item["text"] for item in world.raw()] == [{"S": ""}, {"S": ""}]
