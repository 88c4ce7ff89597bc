"""The HTTP side of the local stack: what reaches the gateway, what Starlette answers, and the log of requests."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard_local.gateway.http_api import Gateway
from dynashard_local.gateway.server import build_app
from dynashard_local.gateway.tokens import Issuer
from dynashard_local.routes import Authorizer, Route, RouteTable

pytestmark = pytest.mark.unit


class Function:
    """A function that keeps its events and answers with the given parts."""

    def __init__(self) -> None:
        self.answer: Any = {"statusCode": 200, "body": "{}"}
        self.events: list[Mapping[str, Any]] = []

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        del request_id, expensive
        self.events.append(event)
        return self.answer


class Server:
    """The application with one function behind the gateway."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self.function = Function()
        self.log: list[str] = []
        issuer = Issuer(key, "http://127.0.0.1/local", "dynashard")
        routes = RouteTable([Route("GET /v1/health", "f"), Route("ANY /v1/{proxy+}", "f", Authorizer(("dynashard",)))])
        self.token = issuer.issue({"tenant_id": "abc"})
        self.app = build_app(
            Gateway(routes, issuer, {"f": self.function}, report=self.log.append),
            issuer,
            tenant_claim="tenant_id",
            ready=lambda: None,
            log=self.log.append,
        )

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=("127.0.0.1", 5))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(asked())


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def server(key: rsa.RSAPrivateKey) -> Server:
    return Server(key)


def test_a_request_reaches_the_function_as_it_was_sent(server: Server) -> None:
    server.ask("PUT", "/v1/a%20b%2Fc?x=1&x=2", content=b'{"n": 1}', headers={"Content-Type": "application/json"})

    event = server.function.events[-1]
    assert (event["rawPath"], event["rawQueryString"], event["body"]) == ("/v1/a b/c", "x=1&x=2", '{"n": 1}')
    assert event["requestContext"]["http"]["method"] == "PUT"
    assert event["headers"]["host"] == "127.0.0.1:8000"


def test_a_body_of_unknown_length_reaches_the_function(server: Server) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    server.ask("POST", "/v1/items", content=parts(), headers={"Content-Type": "text/plain"})

    assert server.function.events[-1]["body"] == "one two"


@pytest.mark.parametrize(
    ("answer", "status", "length"),
    [
        ({"statusCode": 200, "body": "\u00eb"}, 200, "2"),
        ({"statusCode": 404, "body": "", "headers": {"Content-Length": "77"}}, 404, "0"),
        ({"statusCode": 204}, 204, None),
        ({"statusCode": 304}, 304, None),
    ],
)
def test_the_length_of_an_answer_is_that_of_its_body(
    server: Server, answer: dict[str, Any], status: int, length: str | None
) -> None:
    server.function.answer = answer

    answered = server.ask("GET", "/v1/items")

    assert (answered.status_code, answered.headers.get("content-length")) == (status, length)


def test_another_host_is_refused_before_the_gateway(server: Server) -> None:
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example"):
        assert server.ask("GET", "/v1/health", headers={"Host": host}).status_code == 400, host
    assert server.function.events == []
    assert server.ask("GET", "/v1/health", headers={"Host": "localhost:8000"}).status_code == 200


def test_each_request_has_a_line_in_the_log(server: Server) -> None:
    server.function.answer = {"statusCode": 404, "body": "{}"}

    server.ask("GET", "/v1/a%20b?x=1")
    server.ask("GET", "/local/.well-known/jwks.json")
    server.ask("GET", "/v1/health", headers={"Host": "evil.example"})

    assert server.log == [
        'INFO:     127.0.0.1:5 - "GET /v1/a%20b?x=1 HTTP/1.1" 404 Not Found',
        'INFO:     127.0.0.1:5 - "GET /local/.well-known/jwks.json HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:5 - "GET /v1/health HTTP/1.1" 400 Bad Request',
    ]
