"""`Idempotency-Key` on creates."""

from typing import Any

import pytest

from dynashard.testing.faults import FaultyTransport, afterwards, lost_request, throttled
from dynashard.transport import Transport
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import caller_on
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

KEY = {"Idempotency-Key": "order-66"}
INCIDENT = {"number": 2, "title": "Errors above 1%", "participants": ["user_ada"]}
"""An entity with attachments, which is created in steps."""


@pytest.fixture
def caller(transport: Transport, table: str, records: str) -> Caller:
    return caller_on(transport, table, records)


def first_of_the_tenant(caller: Caller) -> None:
    """Create the first incident, so that the tenant has a counter of their numbers."""
    assert caller.post("/v1/incidents", {"title": "The first"}).status == 201


def _stored(dynamodb: RawDynamoDB, records: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = dynamodb.call("Scan", TableName=records)["Items"]
    return items


def test_repeated_create_gets_the_first_answer(caller: Caller) -> None:
    first = caller.post("/v1/users", a_user(), headers=KEY)
    again = caller.post("/v1/users", a_user(), headers=KEY)

    assert (first.status, again.status) == (201, 201)
    assert again.content == first.content
    assert (again.etag, again.headers["location"]) == (first.etag, first.headers["location"])
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers


def test_a_repeated_create_is_recognised_whatever_its_caller_wants_returned(caller: Caller) -> None:
    first = caller.post("/v1/users", a_user(), headers={**KEY, "prefer": "return=minimal"})
    again = caller.post("/v1/users", a_user(), headers=KEY)

    assert (again.status, again.etag, again.headers["idempotency-replayed"]) == (201, first.etag, "true")
    assert again.headers["location"] == first.headers["location"] == f"/v1/users/{again.json['id']}"


def test_first_answer_is_repeated_even_after_the_item_changed(caller: Caller) -> None:
    first = caller.post("/v1/users", a_user(), headers=KEY)
    caller.patch(first.headers["location"], {"display_name": "Countess"})

    again = caller.post("/v1/users", a_user(), headers=KEY)

    assert again.content == first.content


def test_a_repeat_after_a_delete_gets_the_first_answer_and_creates_nothing(caller: Caller) -> None:
    first = caller.post("/v1/users", a_user(id="1"), headers=KEY)
    caller.delete("/v1/users/1")

    again = caller.post("/v1/users", a_user(id="1"), headers=KEY)

    assert (again.status, again.content) == (201, first.content)
    assert caller.get("/v1/users/1").status == 404


def test_key_with_another_body_is_refused(caller: Caller) -> None:
    caller.post("/v1/users", a_user(), headers=KEY)

    answer = caller.post("/v1/users", a_user(display_name="Other"), headers=KEY)

    assert (answer.status, answer.code) == (422, "idempotency_key_reused")


def test_a_key_belongs_to_one_tenant(caller: Caller) -> None:
    first = caller.post("/v1/users", a_user(), headers=KEY)

    other = caller.of("xyz").post("/v1/users", a_user(), headers=KEY)

    assert other.status == 201
    assert other.json["tenant_id"] == "xyz"
    assert other.json["id"] != first.json["id"]


def test_failed_create_is_not_kept(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    refused = caller.post("/v1/users", a_user(id="1"), headers=KEY)
    caller.delete("/v1/users/1")
    again = caller.post("/v1/users", a_user(id="1"), headers=KEY)

    assert (refused.status, refused.code) == (409, "already_exists")
    assert again.status == 201
    assert "idempotency-replayed" not in again.headers


def test_create_that_was_throttled_succeeds_when_it_is_repeated(transport: Transport, table: str, records: str) -> None:
    faulty = FaultyTransport(transport, [throttled("TransactWriteItems", nth=None)])

    refused = caller_on(faulty, table, records).post("/v1/users", a_user(), headers=KEY)
    again = caller_on(transport, table, records).post("/v1/users", a_user(), headers=KEY)

    assert not faulty.waiting
    assert (refused.status, again.status) == (429, 201)


def test_a_second_request_during_a_stepwise_create_is_asked_to_wait(
    caller: Caller, transport: Transport, table: str, records: str
) -> None:
    seconds = []
    first_of_the_tenant(caller)
    meanwhile = afterwards("PutItem", lambda: seconds.append(caller.post("/v1/incidents", INCIDENT, headers=KEY)))
    faulty = FaultyTransport(transport, [meanwhile])

    first = caller_on(faulty, table, records).post("/v1/incidents", INCIDENT, headers=KEY)

    assert first.status == 201
    [second] = seconds
    assert (second.status, second.code, second.headers["retry-after"]) == (409, "request_in_progress", "1")


def test_create_whose_record_cannot_be_finished_is_still_answered(
    transport: Transport, table: str, records: str
) -> None:
    # The first UpdateItem records the number.
    faulty = FaultyTransport(transport, [throttled("UpdateItem", nth=2)])
    caller = caller_on(faulty, table, records)

    first = caller.post("/v1/incidents", INCIDENT, headers=KEY)
    again = caller.post("/v1/incidents", INCIDENT, headers=KEY)

    assert not faulty.waiting
    assert first.status == 201
    assert caller.get(first.headers["location"]).json == first.json
    assert (again.status, again.code) == (409, "request_in_progress")


@pytest.mark.parametrize(("operation", "path"), [("TransactWriteItems", "users"), ("PutItem", "incidents")])
def test_create_without_any_answer_can_be_sent_again(
    transport: Transport, table: str, records: str, operation: str, path: str
) -> None:
    first_of_the_tenant(caller_on(transport, table))
    faulty = FaultyTransport(transport, [lost_request(operation, nth=None)])

    body = a_user() if path == "users" else INCIDENT
    answer = caller_on(faulty, table, records).post(f"/v1/{path}", body, headers=KEY)

    assert (answer.status, answer.code) == (503, "outcome_unknown")
    assert answer.json["details"]["resend"] is True
    assert answer.headers["retry-after"] == "1"


def test_record_holds_nothing_of_the_request(caller: Caller, dynamodb: RawDynamoDB, records: str) -> None:
    caller.post("/v1/users", a_user(email="secret@example.com", department="x" * 200), headers=KEY)

    [record] = _stored(dynamodb, records)
    assert "secret@example.com" not in str(record)
    assert "x" * 200 not in str(record)
    assert record["expiration"]["N"].isdigit()


def test_large_item_is_replayed_although_its_record_is_small(caller: Caller) -> None:
    body = a_user(id="i" * 900, display_name="d" * 200)
    first = caller.post("/v1/users", body, headers=KEY)

    assert caller.post("/v1/users", body, headers=KEY).content == first.content


def test_refused_body_leaves_no_record(caller: Caller, dynamodb: RawDynamoDB, records: str) -> None:
    answer = caller.post("/v1/users", {}, headers=KEY)

    assert answer.status == 422
    assert _stored(dynamodb, records) == []


@pytest.mark.parametrize("key", ["", "x" * 256, "käse"])
def test_unusable_key_is_refused(caller: Caller, key: str) -> None:
    answer = caller.post("/v1/users", a_user(), headers={"Idempotency-Key": key})

    assert (answer.status, answer.code) == (400, "malformed_header")
