"""The writer on the engine: throttles, kills, repeated messages and invalid messages."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynashard.testing.faults import Fault, lost_answer, lost_request, throttled
from dynashard.transport import Transport
from dynashard.transport.interface import Wire
from dynashard_local.queues.store import Depth
from dynashard_serving.queue_messages import MAX_MESSAGE_BYTES, as_text
from dynashard_serving.writer.queues import KEPT_CHARACTERS
from dynashard_serving.writer.writer import LAST_MILLISECONDS, MOST_UNEXPECTED
from tests.api_caller import TENANT, a_user
from tests.depth import examples
from tests.engine.writer.queue_world import DEAD, INTAKE, OPERATIONS, KilledError, QueueWorld

pytestmark = pytest.mark.engine


@pytest.fixture
def world(transport: Transport, table: str, tmp_path: Path) -> QueueWorld:
    return QueueWorld(transport, table, tmp_path)


def killed(operation: str, nth: int, *, after: bool) -> Fault:
    """Kill the process before or after a request."""

    def strike(send: Any, request: Any) -> Wire:
        if after:
            send(request)
        raise KilledError

    return Fault(operation, strike, nth)


def message(world: QueueWorld, *items: object, **more: object) -> str:
    fields = {"entity": "ping.v1.Ping", "operation": "create", "tenant_id": TENANT, "items": items}
    return json.dumps({**fields, "operation_id": None, "accepted_at": int(world.clock() * 1000), **more})


def ids(world: QueueWorld) -> list[str]:
    return sorted(ping.id for ping in world.stored())


def test_a_throttled_message_stays_and_the_others_are_done(world: QueueWorld) -> None:
    world.send(INTAKE, *(message(world, world.ping(number)) for number in range(3)))

    world.poll(INTAKE, [throttled("PutItem", nth=2)])

    assert ids(world) == ["p0", "p2"]
    assert (world.tallies[-1].stored, world.tallies[-1].left) == (2, 1)
    depth = world.store.depth(INTAKE)
    assert (depth.visible, depth.in_flight) == (0, 1)


def test_what_cannot_be_done_is_counted_as_dead_once_it_is_buried(world: QueueWorld) -> None:
    world.send(INTAKE, message(world, world.ping(), {"id": "wrong"}))

    world.poll(INTAKE, [throttled("PutItem")])
    world.later()
    world.drain()

    assert [(each.stored, each.left, each.poison) for each in world.tallies if each.stored or each.left] == [
        (0, 2, 0),
        (1, 0, 1),
    ]
    assert len(world.dead_letters()) == 1


def test_an_unfinished_message_returns_after_growing_delays(world: QueueWorld) -> None:
    world.send(INTAKE, message(world, world.ping()))
    waits = []
    for _ in range(4):
        world.poll(INTAKE, [throttled("PutItem")])
        waited = 0
        while not world.store.depth(INTAKE).visible:
            world.later(0.5)
            waited += 1
        waits.append(waited / 2)
    world.drain()

    assert waits == [2, 3, 6, 12]
    assert ids(world) == ["p0"]


def test_a_ping_of_the_future_waits_on_the_queue_for_its_time(world: QueueWorld) -> None:
    world.send(INTAKE, message(world, world.ping(-240), world.ping(1)))

    world.drain()
    assert ids(world) == ["p1"]
    assert (world.tallies[-1].stored, world.tallies[-1].left, world.tallies[-1].lags) == (1, 0, [])
    world.later(234)
    assert world.poll(INTAKE) == 0
    world.later(2)
    world.drain()

    assert ids(world) == ["p-240", "p1"]
    assert world.dead_letters() == []


def test_a_time_that_never_comes_ends_as_a_dead_letter_of_the_queue(world: QueueWorld) -> None:
    year = 365 * 24 * 3600
    world.send(INTAKE, message(world, world.ping(-year)))

    for _ in range(50):
        assert world.poll(INTAKE) == 1
        assert not world.store.depth(INTAKE).visible
        world.later(900)
    world.poll(INTAKE)

    assert [reason for reason, _ in world.dead_letters()] == [""]


@pytest.mark.parametrize("fault", [lost_request("PutItem"), lost_answer("PutItem")], ids=["request", "answer"])
def test_a_message_is_stored_once_despite_lost_answers(world: QueueWorld, fault: Fault) -> None:
    world.send(INTAKE, message(world, world.ping(0), world.ping(1)))

    world.poll(INTAKE, [fault])
    world.later()
    world.drain()

    assert ids(world) == ["p0", "p1"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", [1, 3, 4])
def test_a_killed_writer_loses_nothing_and_doubles_nothing(world: QueueWorld, nth: int, *, after: bool) -> None:
    world.send(INTAKE, message(world, *(world.ping(each) for each in (0, 1))), message(world, world.ping(2)))
    world.send(INTAKE, message(world, world.ping(3)))

    with pytest.raises(KilledError):
        world.poll(INTAKE, [killed("PutItem", nth, after=after)])
    assert world.store.depth(INTAKE).in_flight == 3
    world.later()
    world.drain()

    assert ids(world) == ["p0", "p1", "p2", "p3"]
    assert world.store.depth(INTAKE) == Depth(0, 0, 0.0)


def test_no_message_is_started_when_the_time_runs_out(world: QueueWorld) -> None:
    world.send(INTAKE, message(world, world.ping(0), world.ping(1)))
    (delivery,) = world.store.receive(INTAKE, 10)
    left = iter([LAST_MILLISECONDS, LAST_MILLISECONDS - 1])
    record: dict[str, Any] = {"messageId": delivery.id, "receiptHandle": delivery.receipt, "body": delivery.body}
    record["eventSourceARN"] = f"arn:aws:sqs:us-east-1:000000000000:{INTAKE}"
    record["attributes"] = {"ApproximateReceiveCount": "1"}

    failed, tally = world.writer().work([SQSRecord(record)], lambda: next(left))

    assert failed == [delivery.id]
    assert (tally.stored, tally.left, ids(world)) == (1, 1, ["p0"])


PUT = {"tenant_id": TENANT, "operation": "put", "entity": "user.v1.User", "item": {}}
DELETE = {"tenant_id": TENANT, "operation": "delete", "entity": "user.v1.User", "key": {}}
CREATE = {"tenant_id": TENANT, "operation": "create", "entity": "ping.v1.Ping"}
NOBODY = "nobody" * 20
"""The id of an operation without a record."""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("{", "malformed_message", id="no JSON"),
        pytest.param("[]", "malformed_message", id="no object"),
        pytest.param(json.dumps({**CREATE, "tenant_id": ""}), "malformed_message", id="no tenant"),
        pytest.param(json.dumps({**CREATE, "operation": "drop"}), "unknown_operation", id="another operation"),
        pytest.param(json.dumps({**CREATE, "entity": "no.v1.Such"}), "unknown_entity", id="another entity"),
        pytest.param(json.dumps(CREATE), "malformed_message", id="no item"),
        pytest.param(json.dumps({**CREATE, "items": []}), "malformed_message", id="no items"),
        pytest.param(json.dumps({**CREATE, "items": [3]}), "malformed_message", id="an item that is none"),
        pytest.param(json.dumps({**DELETE, "key": []}), "malformed_message", id="a key that is none"),
        pytest.param(json.dumps({**DELETE, "if_match": "x"}), "malformed_message", id="a condition that is none"),
    ],
)
def test_unreadable_messages_go_to_the_dead_letters_at_once_with_the_reason(
    world: QueueWorld, body: str, reason: str
) -> None:
    world.send(INTAKE, body)
    world.drain()

    ((found, kept),) = world.dead_letters()
    assert (found, json.loads(kept)) == (reason, {"unreadable": body})
    assert world.store.depth(INTAKE).in_flight == 0


@pytest.mark.parametrize("accepted_at", [10**399, 10**15, -1, True, 0.5, "now"], ids=lambda value: str(value)[:9])
def test_a_time_of_acceptance_that_is_none_keeps_no_message_of_its_batch_from_being_done(
    world: QueueWorld, accepted_at: object
) -> None:
    others = message(world, world.ping(0), accepted_at=accepted_at)
    world.send(INTAKE, others, message(world, world.ping(1)))

    world.poll(INTAKE)

    assert ids(world) == ["p0", "p1"]
    assert (world.tallies[-1].stored, len(world.tallies[-1].lags)) == (2, 1)
    assert world.store.depth(INTAKE).in_flight == 0


def test_characters_that_sqs_does_not_take_reach_the_table_and_the_dead_letters(world: QueueWorld) -> None:
    text = "a\ufffe\uffffb"
    user = a_user(id="1", display_name=text)
    accepted = world.caller.post("/v1/users", user, headers={"Prefer": "respond-async"})
    world.drain(OPERATIONS)
    world.send(INTAKE, message(world, world.ping(0, session_id=text)))
    world.drain()

    ((reason, kept),) = world.dead_letters()
    assert accepted.status == 202
    assert world.caller.get("/v1/users/1").json["display_name"] == text
    assert (reason, json.loads(kept)["items"][0]["session_id"]) == ("validation_failed", text)


@pytest.mark.parametrize(
    ("spare", "whole", "sentence"),
    [(2000, True, f"there is no record of {NOBODY}"), (120, True, "unknown_operation"), (0, False, None)],
    ids=["with a sentence", "with the reason's code", "without its content"],
)
def test_a_message_as_large_as_a_queue_takes_becomes_a_dead_letter(
    world: QueueWorld, spare: int, sentence: str | None, *, whole: bool
) -> None:
    """The reason makes the message larger."""
    document = {**PUT, "operation_id": NOBODY, "item": {"note": ""}}
    document["item"] = {"note": "x" * (MAX_MESSAGE_BYTES - spare - len(as_text(document)))}
    world.send(INTAKE, as_text(document))
    world.drain()
    world.later()

    (letter,) = world.store.receive(DEAD[INTAKE], 10)
    assert json.loads(letter.body) == (document if whole else {**document, "item": {}, "truncated": True})
    assert letter.attributes["reason"]["StringValue"] == "unknown_operation"
    assert sentence is None or letter.attributes["told"]["StringValue"] == sentence


def test_a_large_message_that_cannot_be_read_becomes_a_dead_letter_with_its_beginning(world: QueueWorld) -> None:
    body = '"' * MAX_MESSAGE_BYTES
    world.send(INTAKE, body)
    world.drain()

    ((reason, kept),) = world.dead_letters()
    assert reason == "malformed_message"
    assert json.loads(kept) == {"unreadable": body[:KEPT_CHARACTERS], "truncated": True}


@pytest.mark.parametrize(
    "wrong",
    ["", "a" * 65, "a b", "abc\n", "abc:0", "null", None, ["abc"]],
    ids=["empty", "long", "blank", "line break", "colon", "null as text", "null", "list"],
)
def test_a_message_with_an_invalid_tenant_goes_to_the_dead_letters(world: QueueWorld, wrong: object) -> None:
    right = {**CREATE, "items": [world.ping(1)], "operation_id": None, "accepted_at": int(world.clock() * 1000)}

    world.send(INTAKE, json.dumps(right))
    world.send(INTAKE, json.dumps({**right, "tenant_id": wrong, "items": [world.ping(2)]}))
    world.drain()

    ((found, _),) = world.dead_letters()
    assert found == "malformed_message"
    assert ids(world) == ["p1"]
    assert len(world.stored()) == 1


@pytest.mark.parametrize(
    ("document", "reason"),
    [(PUT, "malformed_message"), ({**DELETE, "operation_id": "nobody"}, "unknown_operation")],
    ids=["without a record", "of an unknown record"],
)
def test_operations_without_a_record_are_not_done(world: QueueWorld, document: dict[str, Any], reason: str) -> None:
    world.send(INTAKE, json.dumps(document))
    world.drain()

    ((found, kept),) = world.dead_letters()
    assert (found, json.loads(kept)) == (reason, document)


def test_only_the_bad_items_of_a_message_become_dead_letters(world: QueueWorld) -> None:
    bad = world.ping(1, seconds=-5)
    world.send(INTAKE, message(world, world.ping(0), bad, world.ping(2)))
    world.drain()

    ((reason, kept),) = world.dead_letters()
    assert reason == "validation_failed"
    assert json.loads(kept)["items"] == [{**bad, "tenant_id": TENANT}]
    assert ids(world) == ["p0", "p2"]


def test_an_item_with_a_unique_value_of_another_becomes_a_dead_letter_at_once(world: QueueWorld) -> None:
    methods = [
        {"user_id": "ada", "method_id": each, "channel": "email", "address": "ada@x.org", "tenant_id": TENANT}
        for each in ("first", "second")
    ]
    world.send(INTAKE, message(world, *methods, entity="contact.v1.ContactMethod"))

    world.poll(INTAKE)

    [(reason, body)] = world.dead_letters()
    assert reason == "not_unique"
    assert "second" in body
    assert "first" not in body


def test_a_bad_item_beside_a_throttled_one_becomes_one_dead_letter(world: QueueWorld) -> None:
    world.send(INTAKE, message(world, world.ping(0), world.ping(1, seconds=-5)))

    world.poll(INTAKE, [throttled("PutItem")])
    world.later()
    world.drain()

    assert [reason for reason, _ in world.dead_letters()] == ["validation_failed"]
    assert ids(world) == ["p0"]


def test_an_unexpected_failure_is_given_up_after_some_deliveries(world: QueueWorld) -> None:
    def strike(_send: Any, _request: Any) -> Wire:
        raise RuntimeError("a bug")

    world.send(INTAKE, message(world, world.ping()))
    for _ in range(MOST_UNEXPECTED):
        world.poll(INTAKE, [Fault("PutItem", strike, None)])
        world.later(900)

    ((reason, _),) = world.dead_letters()
    assert reason == "unexpected_error"
    assert world.store.depth(INTAKE).visible == 0


def test_a_throttle_is_never_given_up_by_the_writer(world: QueueWorld) -> None:
    world.send(INTAKE, message(world, world.ping()))
    for _ in range(2 * MOST_UNEXPECTED):
        world.poll(INTAKE, [throttled("PutItem")])
        world.later(900)
    world.drain()

    assert ids(world) == ["p0"]
    assert world.dead_letters() == []


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_ping_is_stored_once_under_any_faults(world: QueueWorld, data: st.DataObject) -> None:
    # Examples share a table, in which a drawn name would occur again.
    series = f"s{uuid4().hex}"
    sent = data.draw(
        st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=6), label="sent"
    )
    world.send(INTAKE, *(message(world, *(world.ping(each, series=series) for each in pack)) for pack in sent))
    kinds = st.sampled_from(["throttled", "lost request", "lost answer", "killed before", "killed after", None])
    for _ in range(data.draw(st.integers(0, 4), label="rounds")):
        nth, kind = data.draw(st.integers(1, 12)), data.draw(kinds)
        faults = {
            "throttled": [throttled("PutItem", nth=nth)],
            "lost request": [lost_request("PutItem", nth=nth)],
            "lost answer": [lost_answer("PutItem", nth=nth)],
            "killed before": [killed("PutItem", nth, after=False)],
            "killed after": [killed("PutItem", nth, after=True)],
        }.get(kind or "", [])
        with suppress(KilledError):
            world.poll(INTAKE, faults)
        world.later()
    world.drain()

    wanted = {f"p{number}" for pack in sent for number in pack}
    assert sorted(ping.id for ping in world.stored(series)) == sorted(wanted)
    assert world.store.depth(INTAKE).visible == world.store.depth(INTAKE).in_flight == 0
