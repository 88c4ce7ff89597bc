"""No request makes the API answer with a server error."""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynashard.transport import Transport
from dynashard_serving.api.app import App
from tests.api_caller import ALL_SCOPES, TENANT, a_user
from tests.depth import examples
from tests.engine.api.api_on_engine import caller_on, idempotency_table
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

INTERNAL = 500
NAMES = ("limit", "order", "direction", "prefix", "from", "to", "cursor", "index", "fields", "consistent")
FIELDS = ("tenant_id", "id", "email", "display_name", "manager_id", "department", "status", "expires_at", "created_at")
ANY_TEXT = st.text(alphabet=st.characters(), max_size=20)  # lone surrogates included
KNOWN_TEXTS = st.sampled_from(
    [
        *("1", "0", "-1", "1e3", "null", "true", "abc", "abc:0", "user.v1.User:abc:1", "eng", "*", '"1"', 'W/"1"', ""),
        *("by_email", "by_department", "ordered", "shard", "asc", "id", "a@b.c", "active", "\x00", "\U0010ffff", "é"),
        *("2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "x" * 1100, "[]", "{}"),
    ]
)
TEXTS = KNOWN_TEXTS | ANY_TEXT
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
TIMES = st.datetimes(timezones=st.timezones() | st.none()).map(lambda time: time.isoformat())
PLAUSIBLE = st.fixed_dictionaries(
    {},
    optional={
        "id": TEXTS,
        "display_name": TEXTS,
        "manager_id": st.none() | TEXTS,
        "department": st.none() | TEXTS,
        "status": st.sampled_from(["active", "disabled", None]),
        "expires_at": st.none() | TIMES | KNOWN_TEXTS | st.integers(-(10**18), 10**18) | st.floats(),
        "tenant_id": st.just(TENANT),
    },
)
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS) | TEXTS, VALUES, max_size=3)
BODIES = (
    st.builds(lambda changes: json.dumps(a_user(**changes)).encode(), PLAUSIBLE)
    | st.builds(lambda changes: json.dumps(a_user(**changes)).encode(), DOCUMENTS)
    | st.builds(lambda change: json.dumps(change).encode(), PLAUSIBLE | DOCUMENTS | VALUES)
    | st.binary(max_size=50)
)
LISTINGS = st.fixed_dictionaries(
    {},
    optional={
        "limit": st.integers(1, 1000).map(str) | TEXTS,
        "order": st.sampled_from(["round_robin", "ordered", "shard"]),
        "direction": st.sampled_from(["asc", "desc"]),
        "prefix": TEXTS,
        "from": TEXTS,
        "to": TEXTS,
        "status": st.sampled_from(["active", "disabled"]) | TEXTS,
        "fields": st.lists(st.sampled_from(FIELDS), min_size=1).map(",".join) | TEXTS,
        "consistent": st.sampled_from(["true", "false"]),
        "manager_id": TEXTS,
        "cursor": TEXTS,
    },
) | st.fixed_dictionaries(
    {"index": st.sampled_from(["by_email", "by_department", "by_manager"]), "department": TEXTS},
    optional={"email": TEXTS, "manager_id": TEXTS, "order": st.just("ordered"), "prefix": TEXTS, "id": TEXTS},
)
PATHS = st.builds("/v1/users/{}".format, TEXTS) | st.sampled_from(["/v1/users", "/v1/users/1"]) | ANY_TEXT
QUERIES = (
    st.builds(
        lambda pairs: urlencode(pairs, errors="replace"),
        st.lists(st.tuples(st.sampled_from(NAMES + FIELDS) | TEXTS, TEXTS), max_size=4),
    )
    | ANY_TEXT
    | st.builds(quote, st.binary(max_size=10))
)
HEADERS = st.dictionaries(
    st.sampled_from(["if-match", "if-none-match", "idempotency-key", "content-type", "accept-encoding", "accept"]),
    st.sampled_from(["application/json", "application/merge-patch+json", '"1"', "*", "k"]) | TEXTS,
    max_size=4,
)
METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]) | ANY_TEXT


@pytest.fixture(scope="module")
def app(transport: Transport, create_table: Any, dynamodb: RawDynamoDB) -> Iterator[App]:
    with idempotency_table(dynamodb) as records:
        caller = caller_on(transport, create_table(), records)
        caller.post("/v1/users", a_user(id="1"))
        yield caller.app


def _event(
    method: str,
    path: str,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    tenant: str = TENANT,
) -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers or {}),
        "body": None if body is None else base64.b64encode(body).decode(),
        "isBase64Encoded": body is not None,
        "requestContext": {
            "stage": "$default",
            "requestId": "fuzz",
            "http": {"method": method, "path": path},
            "authorizer": {"jwt": {"claims": {"tenant_id": tenant, "scope": ALL_SCOPES}}},
        },
    }


EVENTS = st.builds(
    _event,
    METHODS,
    PATHS,
    query=QUERIES,
    headers=HEADERS,
    body=st.none() | BODIES,
    tenant=st.just(TENANT) | TEXTS,
)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(event=EVENTS)
def test_no_request_causes_a_server_error(app: App, event: dict[str, Any]) -> None:
    answer = app.handle(event)

    assert answer["statusCode"] < INTERNAL, answer
    json.dumps(answer).encode()


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    target=st.sampled_from([("POST", "/v1/users"), ("PUT", "/v1/users/1"), ("PATCH", "/v1/users/1")]),
    body=BODIES,
    tags=st.none() | st.sampled_from(['"1"', "*", '"a", "b"', 'W/"a"', "a"]),
    key=st.none() | st.sampled_from(["k", "é"]),
)
def test_no_body_causes_a_server_error(
    app: App, target: tuple[str, str], body: bytes, tags: str | None, key: str | None
) -> None:
    method, path = target
    headers = {"content-type": "application/json"}
    headers |= {"if-match": tags} if tags else {}
    headers |= {"idempotency-key": key} if key else {}

    answer = app.handle(_event(method, path, headers=headers, body=body))

    assert answer["statusCode"] < INTERNAL, answer
    if answer["statusCode"] in {200, 201}:
        location = answer["headers"].get("Location", path)
        again = app.handle(_event("GET", location, query="consistent=true"))
        assert again["statusCode"] in {200, 404}, again


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=LISTINGS)
def test_no_listing_causes_a_server_error(app: App, query: dict[str, str]) -> None:
    answer = app.handle(_event("GET", "/v1/users", query=urlencode(query, errors="replace")))

    assert answer["statusCode"] < INTERNAL, answer
