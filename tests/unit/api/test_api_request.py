"""Reading API Gateway events."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynashard_local.gateway.events import HttpRequest, claim_text
from dynashard_serving.api.body import body_of
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.request import ApiRequest, TenantClaim, headers_of, path_values, query_of, tenant_of
from dynashard_serving.limits import MAX_BODY_BYTES, MAX_QUERY_BYTES

pytestmark = pytest.mark.unit

EVENTS = Path(__file__).parents[2] / "events"
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1)


def load(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def read_body(event: Mapping[str, Any]) -> bytes:
    return body_of(event, headers_of(event))


def test_event_of_the_gateway_becomes_a_request() -> None:
    event = load("patch_user")

    request = ApiRequest.from_event(event, event["rawPath"], TenantClaim("tenant_id"))

    assert (request.method, request.tenant, request.query) == ("PATCH", "abc", ())
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert json.loads(request.body) == {"department": "eng", "manager_id": None}


def test_query_is_read_from_the_raw_string() -> None:
    assert query_of(load("list_users")) == (
        ("limit", "2"),
        ("index", "by_email"),
        ("email", "ada+l@example.com"),
        ("limit", "3"),
    )


@pytest.mark.parametrize(
    ("authorizer", "code"),
    [
        (None, "unauthenticated"),
        ({}, "unauthenticated"),
        ({"lambda": {"tenant_id": "abc"}}, "unauthenticated"),
        ({"jwt": {}}, "unauthenticated"),
        ({"jwt": {"claims": {}}}, "tenant_missing"),
        ({"jwt": {"claims": {"tenant": "abc"}}}, "tenant_missing"),
        ({"jwt": {"claims": {"tenant_id": ""}}}, "tenant_missing"),
        ({"jwt": {"claims": {"tenant_id": 7}}}, "tenant_missing"),
        ({"jwt": {"claims": {"tenant_id": ["abc"]}}}, "tenant_missing"),
        ({"jwt": {"claims": {"tenant_id": "abc:0"}}}, "tenant_missing"),
        ({"jwt": {"claims": {"tenant_id": "\ud800"}}}, "tenant_missing"),
        *(
            ({"jwt": {"claims": {"tenant_id": claim_text(claim)}}}, "tenant_missing")
            for claim in (None, True, False, 4.5, 1e21, [], ["abc"], ["a", "b"], {"a": "b"}, "NULL", "True")
        ),
        *(
            ({"jwt": {"claims": {"tenant_id": claim}}}, "tenant_missing")
            for claim in (None, True, " ", " abc", "abc ", "a b", "abc\n", "\nabc", "abc\r\n", "a\tb", "a/b", "a.b")
        ),
        *(({"jwt": {"claims": {"tenant_id": claim}}}, "tenant_missing") for claim in ("é", "a" * 65, "٣", "map[a:b]")),
    ],
)
def test_request_without_a_verified_tenant_is_refused(authorizer: Any, code: str) -> None:
    event = load("list_users")
    event["requestContext"]["authorizer"] = authorizer

    with pytest.raises(ProblemError) as refused:
        tenant_of(event, TenantClaim("tenant_id"))

    assert refused.value.code == code


def test_an_encoded_body_is_decoded() -> None:
    raw = b"\x00\xff"

    assert read_body({"body": base64.b64encode(raw).decode(), "isBase64Encoded": True}) == raw
    assert read_body({"body": "é"}) == "é".encode()
    assert read_body({}) == b""


@pytest.mark.parametrize("event", [{"body": "*", "isBase64Encoded": True}, {"body": "\ud800"}])
def test_body_that_cannot_be_decoded_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(ProblemError) as refused:
        read_body(event)

    assert refused.value.code == "malformed_body"


def test_a_body_is_accepted_up_to_400_kb() -> None:
    assert len(read_body({"body": "x" * MAX_BODY_BYTES})) == MAX_BODY_BYTES
    with pytest.raises(ProblemError) as refused:
        read_body({"body": "é" + "x" * (MAX_BODY_BYTES - 1)})

    assert (refused.value.status, refused.value.code) == (413, "body_too_large")


@pytest.mark.parametrize("raw", ["a=%ff", "&".join(["a=1"] * 121), "a=" + "x" * MAX_QUERY_BYTES])
def test_query_that_cannot_be_decoded_is_refused(raw: str) -> None:
    with pytest.raises(ProblemError) as refused:
        query_of({"rawQueryString": raw})

    assert refused.value.code == "malformed_query"


@given(TEXT.filter(lambda text: "?" not in text))
def test_a_path_value_survives_the_decoding_of_the_gateway(value: str) -> None:
    sent = HttpRequest("GET", "/v1/users/" + quote(value, safe=""))

    assert path_values(sent.decoded_path, "/v1/users/", 1) == (value,)


@given(TEXT)
def test_a_path_value_survives_a_source_that_keeps_paths_encoded(value: str) -> None:
    assert path_values("/v1/users/" + quote(value, safe=""), "/v1/users/", 1) == (value,)


def test_the_last_path_parameter_takes_the_rest_of_the_path() -> None:
    assert path_values("/v1/notes/a/b/c", "/v1/notes/", 2) == ("a", "b/c")
    assert path_values("/v1/notes/a", "/v1/notes/", 2) is None
    assert path_values("/v1/notes//b", "/v1/notes/", 2) is None


@pytest.mark.parametrize("path", ["/v1/users/%ff", "/v1/users/\ud800"])
def test_a_path_that_is_not_utf8_is_refused(path: str) -> None:
    with pytest.raises(ProblemError) as refused:
        path_values(path, "/v1/users/", 1)

    assert refused.value.code == "malformed_path"
