"""Conversion of HTTP requests to API Gateway events, and of answers to HTTP."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from dynashard_local.gateway.events import (
    HttpRequest,
    Invocation,
    WrongAnswerError,
    build_event,
    build_response,
    claim_text,
)

pytestmark = pytest.mark.unit

FIXTURES = sorted((Path(__file__).parent / "events").glob("*.json"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_request_becomes_the_event_that_api_gateway_would_send(path: Path) -> None:
    fixture = json.loads(path.read_text())
    given = fixture["request"]
    request = HttpRequest(**{**given, "body": given["body"].encode(), "headers": [tuple(h) for h in given["headers"]]})

    event = build_event(request, Invocation(**fixture["invocation"]))

    assert event == fixture["event"]


@pytest.mark.parametrize(
    ("content_type", "encoded"),
    [
        ("application/json", False),
        ("Application/JSON; charset=utf-8", False),
        ("text/csv", False),
        ("application/xml", False),
        ("application/x-www-form-urlencoded", True),
        ("application/octet-stream", True),
        ("", True),
    ],
)
def test_a_body_is_base64_unless_its_type_is_text(content_type: str, *, encoded: bool) -> None:
    request = HttpRequest("POST", "/", headers=[("Content-Type", content_type)], body=b"\xc3\xab")

    event = build_event(request, Invocation("id", 0))

    assert event["isBase64Encoded"] is encoded
    assert event["body"] == (base64.b64encode(b"\xc3\xab").decode() if encoded else "\u00eb")


@pytest.mark.parametrize(
    ("path", "decoded"),
    [
        ("/v1/a%2Fb%20%C3%AB", "/v1/a/b \u00eb"),
        ("/v1/a%2541", "/v1/a%2541"),
        ("/v1/a%3Fb", "/v1/a"),
        ("/v1/%FFa%fe", "/v1/%FFa%FE"),
        ("/v1/%C3%28%ed%a0%80", "/v1/%C3(%ED%A0%80"),
    ],
)
def test_escapes_of_a_path_are_decoded_once_unless_they_are_not_utf_8(path: str, decoded: str) -> None:
    assert build_event(HttpRequest("GET", path), Invocation("id", 0))["rawPath"] == decoded


@pytest.mark.parametrize(
    ("claim", "text"),
    [("a", "a"), (1700000000, "1700000000"), (False, "false"), (["a", 1], "[a 1]"), (None, "null"), ([], "[]")],
)
def test_a_claim_reaches_the_function_as_text(claim: Any, text: str) -> None:
    assert claim_text(claim) == text


def test_an_answer_in_the_full_format_keeps_status_headers_cookies_and_body() -> None:
    answer = {
        "statusCode": 201,
        "headers": {"Location": "/v1/users/1", "X-Number": 5, "Content-Type": "application/problem+json"},
        "cookies": ["a=1", "b=2"],
        "body": "Zo\u00eb",
    }

    response = build_response(answer)

    assert response.status == 201
    assert response.body == "Zo\u00eb".encode()
    assert list(response.headers) == [
        ("location", "/v1/users/1"),
        ("x-number", "5"),
        ("content-type", "application/problem+json"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
    ]


def test_a_base64_answer_is_decoded() -> None:
    answer = {"statusCode": "200", "body": base64.b64encode(b"\x00\xff").decode(), "isBase64Encoded": True}

    response = build_response(answer)

    assert response.body == b"\x00\xff"


@pytest.mark.parametrize(
    ("answer", "body"), [({"a": 1}, b'{"a":1}'), ("text", b"text"), ([1], b"[1]"), (None, b"null")]
)
def test_an_answer_without_a_status_code_is_200_with_itself_as_json(answer: Any, body: bytes) -> None:
    response = build_response(answer)

    assert (response.status, response.body) == (200, body)
    assert list(response.headers) == [("content-type", "application/json")]


@pytest.mark.parametrize(
    "answer",
    [
        {"statusCode": "many"},
        {"statusCode": 99},
        {"statusCode": None},
        {"statusCode": 200, "body": {"not": "text"}},
        {"statusCode": 200, "headers": ["a"]},
        {"statusCode": 200, "headers": {"a": ["b"]}},
        {"statusCode": 200, "cookies": "a=1"},
        {"statusCode": 200, "body": "no base64!", "isBase64Encoded": True},
    ],
)
def test_an_answer_that_breaks_the_format_is_refused(answer: Any) -> None:
    with pytest.raises(WrongAnswerError):
        build_response(answer)
