"""The contacts of a user over REST: one logical partition, read by one Query."""

import pytest

from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_on

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
