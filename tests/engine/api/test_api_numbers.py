"""Numbers that the server allocates to incidents, or that creators send."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from domain.samples.incidents import Incident
from dynashard import Collection, Dynashard
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, about, lost_answer, lost_request, meanwhile, unreachable
from dynashard.transport import Transport
from dynashard_serving.idempotency import KEPT_SECONDS
from dynashard_serving.numbers import MOST_SENT
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_on, idempotency_table
from tests.engine.api.incident_calls import incident
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.topology.topology_world import Clock

pytestmark = pytest.mark.engine


@pytest.fixture
def stored(database: Dynashard) -> Collection[Incident]:
    """The incidents, for writes that do without the rules of the server."""
    return database.collection(Incident)


def test_numbers_are_allocated_one_after_another_for_each_tenant(caller: Caller) -> None:
    assert [incident(caller, f"i{n}")["number"] for n in range(3)] == [1, 2, 3]
    assert incident(caller.of("other"), "i1")["number"] == 1
    assert caller.put("/v1/incidents/put", {"title": "Errors"}).json["number"] == 4


def test_concurrent_creates_have_different_numbers(caller: Caller) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: caller.post("/v1/incidents", {"id": f"i{n}", "title": "x"}), range(64)))

    made = [answer.json["number"] for answer in answers if answer.status == 201]
    assert len(set(made)) == len(made) > 32
    assert {answer.status for answer in answers} <= {201, 409, 429, 503}


def test_a_number_whose_answer_is_lost_is_a_gap_and_never_given_twice(transport: Transport, table: str) -> None:
    caller = caller_on(transport, table)
    incident(caller, "i0")
    faults = [lost_answer("UpdateItem"), lost_request("UpdateItem", nth=3), lost_answer("PutItem", nth=2)]
    faulty = caller_on(FaultyTransport(transport, faults), table)

    answers = [faulty.post("/v1/incidents", {"id": f"i{n}", "title": "x"}) for n in range(1, 8)]

    numbers = [item["number"] for item in caller.get("/v1/incidents").json["items"]]
    assert len(set(numbers)) == len(numbers) >= 1 + sum(answer.status == 201 for answer in answers)


def test_the_first_number_follows_those_that_are_stored(caller: Caller, stored: Collection[Incident]) -> None:
    stored.create(Incident(tenant_id="abc", id="old", number=859, title="of the release before"))

    assert incident(caller, "i1")["number"] == 860


def test_a_number_that_is_sent_must_be_above_all_others_from_the_first_on(caller: Caller) -> None:
    assert incident(caller, "first", number=7)["number"] == 7

    for number in (7, 3):
        again = caller.post("/v1/incidents", {"id": "again", "title": "x", "number": number})
        assert (again.status, again.code, again.json["details"]) == (409, "number_taken", {"last": 7})
    assert incident(caller, "allocated")["number"] == 8
    assert caller.put("/v1/incidents/late", {"title": "x", "number": 8}).code == "number_taken"
    assert incident(caller, "sent", number=20)["number"] == 20
    assert incident(caller, "next")["number"] == 21
    assert incident(caller.of("other"), "first", number=7)["number"] == 7


def test_a_number_that_would_leave_none_for_others_is_refused(caller: Caller) -> None:
    for number in (MOST_SENT + 1, 10**40):
        assert caller.post("/v1/incidents", {"title": "x", "number": number}).fields == {"number": "out_of_range"}

    assert incident(caller, "sent", number=MOST_SENT)["number"] == MOST_SENT
    assert incident(caller, "next")["number"] == MOST_SENT + 1


def test_the_first_number_that_is_sent_must_be_above_those_that_are_stored(
    caller: Caller, stored: Collection[Incident]
) -> None:
    stored.create(Incident(tenant_id="abc", id="old", number=859, title="of the release before"))

    refused = caller.post("/v1/incidents", {"id": "i1", "title": "x", "number": 859})

    assert (refused.code, refused.json["details"]) == ("number_taken", {"last": 859})
    assert incident(caller, "i1", number=860)["number"] == 860


def test_a_create_whose_item_exists_says_so_rather_than_that_its_number_is_taken(caller: Caller) -> None:
    incident(caller, "i1", number=7)
    incident(caller, "i2")

    assert caller.post("/v1/incidents", {"id": "i1", "title": "x", "number": 7}).code == "already_exists"


@pytest.mark.parametrize("sent", [{}, {"number": 1}])
def test_the_first_numbers_of_two_creates_at_once_differ(
    transport: Transport, table: str, sent: Mapping[str, Any]
) -> None:
    other = caller_on(transport, table)
    begins = meanwhile("PutItem", lambda: incident(other, "other", number=1))
    faulty = FaultyTransport(transport, [begins])

    answer = caller_on(faulty, table).post("/v1/incidents", {"id": "i1", "title": "x", **sent})

    assert not faulty.waiting
    if sent:
        assert (answer.code, answer.json["details"]) == ("number_taken", {"last": 1})
    else:
        assert answer.json["number"] == 2


def test_of_concurrent_creates_with_one_number_one_succeeds(caller: Caller) -> None:
    with ThreadPoolExecutor(16) as pool:
        bodies = ({"id": f"i{n}", "title": "x", "number": 5} for n in range(32))
        answers = list(pool.map(lambda body: caller.post("/v1/incidents", body), bodies))

    assert [answer.json["number"] for answer in answers if answer.status == 201] == [5]
    assert [item["number"] for item in caller.get("/v1/incidents").json["items"]] == [5]


@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ({}, '"incident.v1.Incident:'),
        ({"idempotency-key": "k"}, '"incident.v1.Incident:'),
        ({"idempotency-key": "k"}, '"dynashard-idempotency-'),
    ],
    ids=["by its id", "by its idempotency key", "by its idempotency key without a record"],
)
def test_a_create_that_failed_may_be_repeated_with_its_number(
    transport: Transport, table: str, records: str, key: Mapping[str, str], lost: str
) -> None:
    caller = caller_on(transport, table, records)
    incident(caller, "i1", number=6)
    faulty = FaultyTransport(transport, [about(lost, unreachable("PutItem"))])
    body = {"title": "x", "number": 7, **({} if key else {"id": "i2"})}

    failed = caller_on(faulty, table, records).post("/v1/incidents", body, headers=key)
    other = caller.post("/v1/incidents", {**body, "id": "i3"}, headers=dict.fromkeys(key, "other"))
    again = caller.post("/v1/incidents", body, headers=key)

    assert not faulty.waiting
    assert (failed.status, other.code) == (503, "number_taken")
    assert (again.status, again.json["number"]) == (201, 7)
    assert sorted(item["number"] for item in caller.get("/v1/incidents").json["items"]) == [6, 7]


def test_a_number_is_not_repeated_after_an_hour_or_after_the_next_one(transport: Transport, table: str) -> None:
    clock = Clock()
    faulty = FaultyTransport(transport, [unreachable("PutItem", nth=2)])
    caller = caller_on(faulty, table, runtime=Runtime(clock))
    body = {"id": "i1", "title": "x", "number": 7}
    assert caller.post("/v1/incidents", body).status == 503
    assert not faulty.waiting

    clock.now += 3600
    late = caller.post("/v1/incidents", body)
    faulty.inject(unreachable("PutItem"))
    failed = caller.post("/v1/incidents", {**body, "number": 9})
    assert incident(caller, "i2")["number"] == 10

    assert (late.code, failed.status) == ("number_taken", 503)
    for number in (9, 10):
        assert caller.post("/v1/incidents", {**body, "number": number}).json["details"] == {"last": 10}


def test_items_with_equal_numbers_of_earlier_releases_stay_as_they_are(
    caller: Caller, stored: Collection[Incident]
) -> None:
    for name in ("a", "b"):
        stored.create(Incident(tenant_id="abc", id=name, number=7, title="old"))

    assert [caller.patch(f"/v1/incidents/{name}", {"title": "new"}).json["number"] for name in "ab"] == [7, 7]
    assert caller.put("/v1/incidents/a", {"title": "newer", "number": 7}).json["number"] == 7
    assert [item["number"] for item in caller.get("/v1/incidents").json["items"]] == [7, 7]
    assert incident(caller, "c")["number"] == 8


def test_a_number_does_not_change(caller: Caller) -> None:
    incident(caller, "i1")

    assert caller.patch("/v1/incidents/i1", {"number": 5}).fields == {"number": "immutable"}
    assert caller.put("/v1/incidents/i1", {"title": "x", "number": 5}).fields == {"number": "immutable"}
    assert caller.put("/v1/incidents/i1", {"title": "x", "number": 1}).json["number"] == 1
    assert caller.put("/v1/incidents/i1", {"title": "y"}).json["number"] == 1
    assert caller.patch("/v1/incidents/i1", {"number": None}).json["number"] == 1


def test_a_repeated_create_has_the_number_of_the_first(transport: Transport, table: str, dynamodb: RawDynamoDB) -> None:
    with idempotency_table(dynamodb) as records:
        caller = caller_on(transport, table, records)
        first, again = (
            caller.post("/v1/incidents", {"title": "x"}, headers={"idempotency-key": "k"}) for _ in range(2)
        )

    assert (first.status, again.json) == (201, first.json)
    assert incident(caller, "i2")["number"] == 2


@pytest.mark.parametrize("sent", [{}, {"number": 9}])
def test_a_counter_that_another_program_has_damaged_is_named(
    caller: Caller, dynamodb: RawDynamoDB, table: str, sent: Mapping[str, Any]
) -> None:
    incident(caller, "i1")
    [row] = [each for each in dynamodb.call("Scan", TableName=table)["Items"] if "sent_until" in each]
    dynamodb.call("PutItem", TableName=table, Item={**row, "last": {"S": "seven"}})

    refused = caller.post("/v1/incidents", {"id": "i2", "title": "x", **sent})

    assert (refused.status, refused.code) == (500, "undecodable_item")
    assert caller.get("/v1/incidents/i2").status == 404


class LeapingClock(Clock):
    """A clock that is 3 seconds later after the next look at it."""

    leaps = False

    def __call__(self) -> float:
        now = self.now
        if self.leaps:
            self.now, self.leaps = now + 3, False
        return now


def test_a_repeat_whose_record_expires_while_it_is_done_has_a_number(
    transport: Transport, table: str, records: str
) -> None:
    clock = LeapingClock()
    faulty = FaultyTransport(transport)
    caller = caller_on(faulty, table, records, runtime=Runtime(clock))
    repeats = {"idempotency-key": "k"}
    first = caller.post("/v1/incidents", {"title": "x"}, headers=repeats)

    def expiring(send: Any, request: Any) -> Any:
        clock.leaps = True
        return send(request)

    clock.now += KEPT_SECONDS - 1
    faulty.inject(Fault("GetItem", expiring, None, '"create#'))
    again = caller.post("/v1/incidents", {"title": "x"}, headers=repeats)

    assert not faulty.waiting
    assert (first.json["number"], again.status, again.json["number"]) == (1, 201, 2)
