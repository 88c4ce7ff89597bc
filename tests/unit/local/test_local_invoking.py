"""Lambda's API on the local server."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from dynashard_local.functions.local_function import FunctionError, OverloadedError, PayloadTooLargeError, event_text
from dynashard_local.gateway.invocations import PATH, Invoker

pytestmark = pytest.mark.unit

SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=local/...", "X-Amz-Invocation-Type": "RequestResponse"}
URL = "/2015-03-31/functions/commands/invocations"


class Function:
    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.events: list[Any] = []
        self.expensive: list[bool] = []

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        assert request_id
        self.expensive.append(expensive)
        self.events.append(event)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass(frozen=True)
class Caller:
    app: Starlette

    def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.post(url, content=content, headers=headers)

        return asyncio.run(send())


def client_of(function: Function, reports: list[str] | None = None) -> Caller:
    invoker = Invoker({"commands": function}, report=([] if reports is None else reports).append)
    return Caller(Starlette(routes=[Route(PATH, invoker.answer, methods=["POST"])]))


def test_a_function_gets_the_payload_and_its_answer_is_returned() -> None:
    function = Function({"ok": True})

    answer = client_of(function).post(URL, content=b'{"operation": "list"}', headers=SIGNED)

    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert answer.headers["x-amz-executed-version"] == "$LATEST"
    assert "x-amz-function-error" not in answer.headers
    assert function.events == [{"operation": "list"}]


def test_a_function_can_be_named_by_its_arn() -> None:
    url = URL.replace("commands", "arn:aws:lambda:us-east-1:000000000000:function:commands")

    assert client_of(Function(7)).post(url, content=b"{}", headers=SIGNED).json() == 7


def test_a_page_in_a_browser_cannot_invoke() -> None:
    function = Function()

    answer = client_of(function).post(URL, content=b"{}", headers={"Content-Type": "text/plain"})

    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (403, "MissingAuthenticationTokenException")
    assert function.events == []


def test_a_failure_of_the_function_is_reported_as_by_lambda() -> None:
    reports: list[str] = []

    answer = client_of(Function(FunctionError("it took too long")), reports).post(URL, content=b"{}", headers=SIGNED)

    assert (answer.status_code, answer.headers["x-amz-function-error"]) == (200, "Unhandled")
    assert answer.json() == {"errorType": "Runtime.Error", "errorMessage": "it took too long"}
    assert len(reports) == 1


def test_dry_run_calls_nothing() -> None:
    function = Function()

    answer = client_of(function).post(URL, content=b"{}", headers=SIGNED | {"X-Amz-Invocation-Type": "DryRun"})

    assert (answer.status_code, function.events) == (204, [])


@pytest.mark.parametrize(
    ("url", "body", "headers", "refused"),
    [
        (URL.replace("commands", "other"), b"{}", {}, (404, "ResourceNotFoundException")),
        (URL, b"{", {}, (400, "InvalidRequestContentException")),
        (URL, b'"' + b"x" * 6 * 1024 * 1024 + b'"', {}, (413, "RequestTooLargeException")),
        (URL, b"{}", {"X-Amz-Invocation-Type": "Event"}, (400, "InvalidParameterValueException")),
    ],
    ids=["unknown", "invalid JSON", "too large", "event"],
)
def test_requests_that_lambda_refuses_are_refused(
    url: str, body: bytes, headers: dict[str, str], refused: tuple[int, str]
) -> None:
    answer = client_of(Function()).post(url, content=body, headers=SIGNED | headers)

    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == refused
    assert answer.json()["Message"]


def test_event_that_is_nested_deeper_than_orjson_writes_reaches_the_function() -> None:
    event = json.loads("[" * 500 + "]" * 500)

    assert json.loads(event_text(event)) == event


def test_event_that_grows_too_large_is_refused() -> None:
    answer = client_of(Function(PayloadTooLargeError())).post(URL, content=b"{}", headers=SIGNED)

    assert answer.status_code == 413


def test_a_full_function_refuses_as_lambda_throttles() -> None:
    answer = client_of(Function(OverloadedError())).post(URL, content=b"{}", headers=SIGNED)

    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (429, "TooManyRequestsException")


def test_operations_on_many_items_are_expensive() -> None:
    function = Function({"ok": True})

    for operation in ("get", "list", "count", "create", "batch_write", "unheard of"):
        client_of(function).post(URL, content=b'{"operation": "%b"}' % operation.encode(), headers=SIGNED)

    assert function.expensive == [False, True, True, False, True, False]
