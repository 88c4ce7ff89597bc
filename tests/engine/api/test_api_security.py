"""A tenant cannot reach the items of another one."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynashard.transport import Transport
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import caller_on

pytestmark = pytest.mark.engine

VICTIM, ATTACKER = "victim", "attacker"
SECRET = "the-victims-own"  # noqa: S105 - a name to look for, no password


@pytest.fixture
def victim(transport: Transport, table: str, records: str) -> Caller:
    caller = caller_on(transport, table, records).of(VICTIM)
    user = a_user(id="1", display_name=SECRET, department="eng", manager_id="boss")
    assert caller.post("/v1/users", user, headers={"Idempotency-Key": "k"}).status == 201
    assert caller.post("/v1/users", user | {"id": "2"}).status == 201
    return caller


@pytest.fixture
def attacker(victim: Caller) -> Caller:
    return victim.of(ATTACKER)


@pytest.fixture(autouse=True)
def _victim_unharmed(victim: Caller) -> Iterator[None]:
    before = victim.get("/v1/users/1", query="consistent=true").content
    yield
    assert victim.get("/v1/users/1", query="consistent=true").content == before


IDENTIFIERS = [
    "1",
    "victim/1",
    "../victim/1",
    "..%2Fvictim%2F1",
    "victim:1",
    ":1",
    "1:victim",
    "victim:0/1",
    "user.v1.User:victim:0",
    "user.v1.User:victim:0/1",
    "*",
]
UNADDRESSABLE = ["1%00", "1%0Avictim", "%1F1"]
"""Identifiers that are refused, because they do not fit every URL."""


@pytest.mark.parametrize("identifier", [*IDENTIFIERS, *UNADDRESSABLE])
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_no_path_reaches_another_tenant(attacker: Caller, method: str, identifier: str) -> None:
    body = {"display_name": "Taken"} if method == "PATCH" else None

    answer = attacker.send(method, f"/v1/users/{identifier}", body)

    assert answer.status == 404
    assert SECRET.encode() not in answer.content


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_a_put_to_any_path_writes_an_item_of_the_callers_tenant(attacker: Caller, identifier: str) -> None:
    answer = attacker.put(f"/v1/users/{identifier}", a_user(display_name="Taken"))

    assert answer.status == 201
    assert answer.json["tenant_id"] == ATTACKER


@pytest.mark.parametrize("identifier", UNADDRESSABLE)
def test_a_put_to_an_impossible_path_writes_nothing(attacker: Caller, identifier: str) -> None:
    answer = attacker.put(f"/v1/users/{identifier}", a_user(display_name="Taken"))

    assert answer.status == 422
    assert answer.fields == {"id": "unaddressable"}
    assert attacker.get("/v1/users", query="consistent=true").json["items"] == []


@pytest.mark.parametrize("body", [{"tenant_id": VICTIM}, {"tenant_id": None}, {"tenant_id": [VICTIM]}])
@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/users"), ("PUT", "/v1/users/1"), ("PATCH", "/v1/users/9")])
def test_no_body_names_another_tenant(attacker: Caller, method: str, path: str, body: dict[str, Any]) -> None:
    attacker.put("/v1/users/9", a_user())

    answer = attacker.send(method, path, a_user(**body))

    assert answer.status == 422
    assert "tenant_id" in answer.fields


@pytest.mark.parametrize(
    "query",
    [
        {"tenant_id": VICTIM},
        {"tenant": VICTIM},
        {"index": "by_email", "email": "ada@example.com", "tenant_id": VICTIM},
    ],
)
def test_no_query_names_another_tenant(attacker: Caller, query: dict[str, str]) -> None:
    answer = attacker.get("/v1/users", query=query)

    assert answer.status == 422


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"order": "ordered"},
        {"prefix": "1"},
        {"prefix": "victim"},
        {"from": "\x00", "to": "\U0010ffff"},
        {"index": "by_email", "email": "ada@example.com"},
        {"index": "by_department", "department": "eng"},
        {"index": "by_manager", "manager_id": "boss"},
    ],
)
def test_no_listing_shows_another_tenant(attacker: Caller, query: dict[str, str]) -> None:
    answer = attacker.get("/v1/users", query=query)

    assert answer.status == 200
    assert (answer.json["items"], answer.json["cursor"]) == ([], None)


@pytest.mark.parametrize("value", ["eng:0", "0:eng", f":{VICTIM}", "eng:user.v1.User"])
def test_no_index_field_breaks_out_of_its_key(attacker: Caller, value: str) -> None:
    listed = attacker.get("/v1/users", query={"index": "by_department", "department": value})
    written = attacker.post("/v1/users", a_user(department=value))

    assert (listed.status, written.status) == (422, 422)
    assert {**listed.fields, **written.fields} == {"department": "invalid_key"}


@pytest.mark.parametrize("query", ["limit=1", "limit=1&order=ordered", "limit=1&order=shard"])
def test_a_cursor_of_another_tenant_is_refused(victim: Caller, attacker: Caller, query: str) -> None:
    cursor = victim.get("/v1/users", query=query).json["cursor"]
    assert cursor is not None

    answer = attacker.get("/v1/users", query=f"{query}&cursor={cursor}")

    assert (answer.status, answer.code) == (400, "invalid_cursor")
    assert SECRET.encode() not in answer.content


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Tenant-Id": VICTIM},
        {"Tenant-Id": VICTIM, "tenant_id": VICTIM},
        {"X-Amzn-Oidc-Data": VICTIM},
        {"Authorization": f"Bearer {VICTIM}"},
        {"Cookie": f"tenant_id={VICTIM}"},
        {"X-Original-Url": f"/v1/{VICTIM}/users/1"},
        {"X-Http-Method-Override": "DELETE"},
        {"X-Forwarded-User": VICTIM},
    ],
)
def test_no_header_names_another_tenant(attacker: Caller, headers: dict[str, str]) -> None:
    assert attacker.get("/v1/users/1", headers=headers).status == 404
    assert attacker.get("/v1/users", headers=headers).json["items"] == []


@pytest.mark.parametrize(
    "tenant",
    [f"{VICTIM}:0", f"{VICTIM}:1", ":victim", "victim:", "attacker:user.v1.User:victim", "", "\ud800"],
)
def test_no_claim_breaks_out_of_its_key(attacker: Caller, tenant: str) -> None:
    answer = attacker.of(tenant).get("/v1/users")

    assert (answer.status, answer.code) == (403, "tenant_missing")


def test_claims_outside_the_authorizer_are_ignored(attacker: Caller) -> None:
    event = attacker.event("GET", "/v1/users/1")
    event["claims"] = event["requestContext"]["claims"] = {"tenant_id": VICTIM}
    event["requestContext"]["authorizer"]["claims"] = {"tenant_id": VICTIM}
    event["requestContext"]["authorizer"]["lambda"] = {"tenant_id": VICTIM}
    event["pathParameters"] = {"tenant_id": VICTIM}
    event["stageVariables"] = {"tenant_id": VICTIM}

    assert attacker.app.handle(event)["statusCode"] == 404


def test_no_idempotency_key_replays_another_tenants_answer(attacker: Caller) -> None:
    body = a_user(id="1", display_name=SECRET, department="eng", manager_id="boss")

    answer = attacker.post("/v1/users", body, headers={"Idempotency-Key": "k"})

    assert answer.status == 201
    assert answer.json["tenant_id"] == ATTACKER
    assert "idempotency-replayed" not in answer.headers


def test_an_answer_does_not_reveal_items_of_another_tenant(attacker: Caller) -> None:
    theirs, nobodys = attacker.get("/v1/users/1"), attacker.get("/v1/users/7")

    assert theirs.json["detail"].replace("1", "7") == nobodys.json["detail"].replace("1", "7")
    assert attacker.put("/v1/users/1", a_user(), headers={"If-Match": "*"}).status == 412
    assert attacker.put("/v1/users/7", a_user(), headers={"If-Match": "*"}).status == 412
