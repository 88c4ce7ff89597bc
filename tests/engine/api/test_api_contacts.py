"""The contacts of a user over REST: one logical partition, read by one Query."""

import pytest

from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_on
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    called = caller_on(transport, table)
    for user in ("ada", "bob"):
        method = {"user_id": user, "method_id": "m1", "channel": "sms", "address": "+49 30 1"}
        assert called.post("/v1/contact-methods", method).status == 201
        rule = {"user_id": user, "rule_id": "r1", "method_id": "m1", "after_minutes": 5}
        assert called.post("/v1/notification-rules", rule).status == 201
    return called


def test_all_contacts_of_a_user_are_listed_as_one(caller: Caller) -> None:
    answer = caller.get("/v1/contacts", query={"user_id": "ada"})

    assert [(item["type"], item["user_id"]) for item in answer.json["items"]] == [
        ("contact.v1.ContactMethod", "ada"),
        ("contact.v1.NotificationRule", "ada"),
    ]


def test_one_kind_of_contacts_is_listed_alone(caller: Caller) -> None:
    methods = caller.get("/v1/contact-methods", query={"user_id": "ada"}).json["items"]
    rules = caller.get("/v1/notification-rules", query={"user_id": "ada", "severity": "any"}).json["items"]

    assert [item["method_id"] for item in methods] == ["m1"]
    assert [item["rule_id"] for item in rules] == ["r1"]


def test_a_listing_needs_the_user(caller: Caller) -> None:
    assert caller.get("/v1/contacts").fields == {"user_id": "missing"}
    assert caller.get("/v1/contact-methods").fields == {"user_id": "missing"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("contact-methods", {"user_id": "a", "channel": "pigeon", "address": "x"}, "channel"),
        ("contact-methods", {"user_id": "a:b", "channel": "sms", "address": "x"}, "user_id"),
        ("notification-rules", {"user_id": "a", "method_id": "m", "after_minutes": -1}, "after_minutes"),
    ],
)
def test_a_bad_contact_is_refused_by_field(caller: Caller, path: str, body: dict[str, object], field: str) -> None:
    assert list(caller.post(f"/v1/{path}", body).fields) == [field]


def test_another_tenant_sees_nothing(caller: Caller) -> None:
    assert caller.of("other").get("/v1/contacts", query={"user_id": "ada"}).json["items"] == []
    assert caller.of("other").get("/v1/contact-methods/ada/m1").status == 404


def test_a_second_method_with_the_address_is_a_conflict_that_names_the_fields(caller: Caller) -> None:
    again = {"user_id": "ada", "method_id": "m2", "channel": "sms", "address": "+49 30 1"}

    refused = caller.post("/v1/contact-methods", again)

    assert (refused.status, refused.json["code"]) == (409, "not_unique")
    assert refused.json["details"] == {"fields": ["channel", "address"]}
    assert "m1" not in str(refused.json)
    assert caller.get("/v1/contact-methods/ada/m2").status == 404
    assert caller.put("/v1/contact-methods/ada/m2", {**again, "address": "+49 30 2"}).status == 201
    assert caller.patch("/v1/contact-methods/ada/m2", {"address": "+49 30 1"}).json["code"] == "not_unique"
    assert caller.delete("/v1/contact-methods/ada/m1").status == 204
    assert caller.patch("/v1/contact-methods/ada/m2", {"address": "+49 30 1"}).status == 200


def test_a_repeated_create_with_one_idempotency_key_is_no_conflict(
    transport: Transport, table: str, records: str
) -> None:
    caller = caller_on(transport, table, records)
    method = {"user_id": "ada", "method_id": "m1", "channel": "sms", "address": "+49 30 1"}
    first = caller.post("/v1/contact-methods", method, headers={"Idempotency-Key": "k"})

    again = caller.post("/v1/contact-methods", method, headers={"Idempotency-Key": "k"})

    assert (first.status, again.status, again.json) == (201, 201, first.json)


def test_a_listing_by_unique_fields_alone_is_a_consistent_look_up(transport: Transport, table: str) -> None:
    sent = RecordingTransport(transport)
    caller = caller_on(sent, table)
    method = {"user_id": "ada", "method_id": "m1", "channel": "sms", "address": "+49 30 1"}
    created = caller.post("/v1/contact-methods", method)
    by_address = {"user_id": "ada", "channel": "sms", "address": "+49 30 1"}
    sent.clear()

    found = caller.get("/v1/contact-methods", query=by_address)

    assert found.json == {"items": [created.json], "cursor": None}
    assert sent.operations == ["GetItem", "GetItem"]
    assert all(request["ConsistentRead"] for request in sent.requests)
    assert caller.get("/v1/contact-methods", query={**by_address, "address": "no"}).json["items"] == []
    assert caller.get("/v1/contact-methods", query={**by_address, "fields": "address"}).json["items"] == [
        {"address": "+49 30 1"}
    ]
    assert caller.of("other").get("/v1/contact-methods", query=by_address).json["items"] == []
    assert list(caller.get("/v1/contact-methods", query={**by_address, "channel": "pigeon"}).fields) == ["channel"]
