"""Pings over HTTP: accepted on a queue, stored once by the writer."""

import json
from datetime import timedelta

import pytest

from tests.engine.writer.queue_world import INTAKE, QueueWorld

pytestmark = pytest.mark.engine


def test_a_ping_is_accepted_without_a_request_to_dynamodb(world: QueueWorld) -> None:
    answer = world.caller.post("/v1/pings", world.ping())

    assert (answer.status, answer.json) == (202, {"accepted": 1})
    assert world.transport.calls == []


def test_an_accepted_ping_is_stored_and_found_at_its_address(world: QueueWorld) -> None:
    address = world.caller.post("/v1/pings", world.ping(seconds=30)).headers["location"]

    assert world.caller.get(address).status == 404
    world.drain()

    found = world.caller.get(address)
    assert (found.status, found.json["seconds"]) == (200, 30)


def test_500_pings_are_one_call_of_the_queue(world: QueueWorld) -> None:
    answer = world.caller.post("/v1/pings", [world.ping(number) for number in range(500)])

    assert (answer.status, answer.json) == (202, {"accepted": 500})
    assert len(world.sqs.sent) == 1
    world.drain()
    assert len(world.stored()) == 500


@pytest.mark.parametrize("count", [0, 501])
def test_a_list_is_limited_in_length(world: QueueWorld, count: int) -> None:
    answer = world.caller.post("/v1/pings", [world.ping(number) for number in range(count)])

    assert answer.fields == {"": "list_length"}
    assert world.sqs.sent == []


def test_bad_pings_of_a_list_are_named_and_nothing_is_sent(world: QueueWorld) -> None:
    bad = [world.ping(0), world.ping(1, seconds=-1), 7, world.ping(3, series="a.b"), world.ping(4, revision="x")]

    answer = world.caller.post("/v1/pings", bad)

    assert answer.fields == {
        "1.seconds": "greater_than_equal",
        "2": "object_type",
        "3.series": "string_pattern_mismatch",
        "4.revision": "read_only",
    }
    assert world.sqs.sent == []


@pytest.mark.parametrize(
    ("from_now", "taken"),
    [
        (timedelta(days=-7), True),
        (timedelta(days=-7, seconds=-1), False),
        (timedelta(minutes=5), True),
        (timedelta(minutes=5, seconds=1), False),
    ],
)
def test_late_and_early_pings_have_bounds(world: QueueWorld, from_now: timedelta, *, taken: bool) -> None:
    answer = world.caller.post("/v1/pings", world.ping(int(-from_now.total_seconds())))

    if taken:
        assert answer.status == 202
    else:
        assert answer.fields == {"at": "outside_window"}


def test_a_ping_that_is_accepted_early_is_stored_at_its_time(world: QueueWorld) -> None:
    address = world.caller.post("/v1/pings", world.ping(-300)).headers["location"]

    world.drain()
    assert world.caller.get(address).status == 404
    world.later(300)
    world.drain()

    assert world.caller.get(address).status == 200


def test_a_ping_that_nobody_queues_is_not_stored_early(world: QueueWorld) -> None:
    ping = world.ping(-6)
    refused = world.caller.put(f"/v1/pings/s/e/{ping['at'].replace('+00:00', 'Z')}/{ping['id']}", ping)

    assert (refused.status, refused.code) == (422, "key_too_far_ahead")


@pytest.mark.parametrize(
    "at", ["2026-11-21T12:00:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "now", 7e30]
)
def test_impossible_times_are_refused(world: QueueWorld, at: object) -> None:
    answer = world.caller.post("/v1/pings", world.ping(at=at))

    assert set(answer.fields) == {"at"}


def test_a_ping_for_another_tenant_is_refused(world: QueueWorld) -> None:
    answer = world.caller.post("/v1/pings", [world.ping(tenant_id="other")])

    assert answer.fields == {"0.tenant_id": "immutable"}


def test_a_ping_that_is_sent_again_is_stored_once(world: QueueWorld) -> None:
    for _ in range(3):
        world.caller.post("/v1/pings", [world.ping(1), world.ping(2), world.ping(1)])
    world.drain()

    assert [ping.id for ping in world.stored()] == ["p2", "p1"]
    assert (sum(tally.stored for tally in world.tallies), sum(tally.duplicates for tally in world.tallies)) == (2, 7)


def test_a_late_duplicate_does_not_change_what_is_stored(world: QueueWorld) -> None:
    address = world.caller.post("/v1/pings", world.ping(1)).headers["location"]
    world.drain()
    world.caller.patch(address, {"seconds": 5})
    world.caller.post("/v1/pings", world.ping(1))
    world.drain()

    assert [ping.seconds for ping in world.stored()] == [5]


def test_messages_that_the_queue_refuses_at_first_are_sent_again(world: QueueWorld) -> None:
    world.sqs.refusing = [["0", "2"], ["2"]]

    answer = world.caller.post("/v1/pings", [world.ping(number) for number in range(150)])

    assert answer.status == 202
    world.drain()
    assert len(world.stored()) == 150


def test_messages_that_the_queue_keeps_refusing_are_named(
    world: QueueWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.sqs.refusing = [["1"]] * 3

    answer = world.caller.post("/v1/pings", [world.ping(number) for number in range(120)])

    assert (answer.status, answer.code) == (503, "queue_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert answer.json["details"] == {"not_accepted": list(range(50, 100))}
    written = capsys.readouterr().out
    [logged] = [line["error"] for line in map(json.loads, written.splitlines()) if "error" in line]
    assert logged.endswith("because of RuntimeError: the queue said InternalError"), "the log says why"
    assert "Traceback" not in written
    again = world.caller.post("/v1/pings", [world.ping(number) for number in range(120)])
    world.drain()
    assert again.status == 202
    assert len(world.stored()) == 120


def test_the_lag_is_from_acceptance_to_stored(world: QueueWorld) -> None:
    world.caller.post("/v1/pings", world.ping())
    world.later(7.5)
    world.drain()

    assert [lag for tally in world.tallies for lag in tally.lags] == [7.5]


def test_pings_of_all_series_are_listed_by_time(world: QueueWorld) -> None:
    world.caller.post("/v1/pings", [world.ping(number, series=f"s{number % 3}") for number in range(30)])
    world.drain()

    answer = world.caller.get("/v1/pings", query="index=by_time&at=2026-11-21T00:00:00Z&order=ordered&limit=100")

    assert [item["id"] for item in answer.json["items"]] == [f"p{number}" for number in reversed(range(30))]


def test_messages_are_within_what_a_queue_bills_as_one(world: QueueWorld) -> None:
    world.caller.post("/v1/pings", [world.ping(number, viewer_id="v" * 100) for number in range(500)])

    bodies = [entry["MessageBody"] for call in world.sqs.sent for entry in call["Entries"]]
    assert max(len(body.encode()) for body in bodies) <= 64 * 1024
    assert sum(len(json.loads(body)["items"]) for body in bodies) == 500
    assert world.store.depth(INTAKE).visible == len(bodies)
