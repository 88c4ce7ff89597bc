"""Connections to the local server: the gateway answers without ASGI as it does through ASGI."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard_local.gateway.connections import GatewayConnection
from dynashard_local.gateway.http_api import Gateway
from dynashard_local.gateway.server import build_app
from dynashard_local.gateway.tokens import Issuer
from dynashard_local.routes import Authorizer, Route, RouteTable

pytestmark = pytest.mark.unit

HANG_SECONDS = 30
CHANGING = re.compile(rb"(apigw-requestid|date): [^\r]*")
PORTS = re.compile(r"127\.0\.0\.1:\d+ ")


class Function:
    """A function that keeps its events, and answers by the query of the request."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {
            "none": {"statusCode": 204, "headers": {"X-Kept": "yes"}},
            "unchanged": {"statusCode": 304, "headers": {"ETag": "1"}},
            "missing": {"statusCode": 404, "body": "\u00eb", "headers": {"Content-Length": "77"}},
            "empty": {"statusCode": 200, "body": "", "headers": {"ETag": "1"}},
            "cookies": {"statusCode": 200, "body": "{}", "cookies": ["a=1", "b=2"]},
            "large": {"statusCode": 200, "body": "x" * 3_000_000},
            "broken": {"statusCode": 200, "headers": {"X-Split": "a\r\nb: c"}},
        }

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        del request_id, expensive
        context = {**event["requestContext"], "requestId": "", "time": "", "timeEpoch": 0}
        self.events.append({**event, "requestContext": context, "headers": _without_port(event["headers"])})
        if event["rawQueryString"] == "slow":
            await asyncio.sleep(0)
        if event["rawQueryString"] == "raises":
            raise RuntimeError("raised on purpose")
        return self.answers.get(event["rawQueryString"], {"statusCode": 200, "body": event["rawPath"]})


def _without_port(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "x-forwarded-port"}


class Server:
    """A server on a free port, with what its function and its log got."""

    def __init__(self, key: rsa.RSAPrivateKey, *, direct: bool, **options: Any) -> None:
        self.function, self.log = Function(), list[str]()
        issuer = Issuer(key, "http://127.0.0.1/local", "dynashard")
        routes = RouteTable([Route("GET /v1/health", "f"), Route("ANY /v1/{proxy+}", "f", Authorizer(("dynashard",)))])
        self.token = issuer.issue({"tenant_id": "abc"})
        gateway = Gateway(routes, issuer, {"f": self.function}, report=self.log.append)
        self.ready = threading.Event()
        app = build_app(gateway, issuer, tenant_claim="tenant_id", ready=self.ready.set, log=self.log.append)
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=0,
            log_level="critical",
            server_header=False,
            timeout_keep_alive=2 * HANG_SECONDS,
        )
        config.load()
        if direct:
            answering = partial(GatewayConnection, gateway.answer, self.log.append, **options)
            config.http_protocol_class = answering  # type: ignore[assignment]
        self.uvicorn = uvicorn.Server(config)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve within the block."""
        thread = threading.Thread(target=self.uvicorn.run, daemon=True)
        thread.start()
        assert self.ready.wait(HANG_SECONDS)
        while not self.uvicorn.started:
            self.ready.wait(0.01)
        [self.port] = [listener.getsockname()[1] for each in self.uvicorn.servers for listener in each.sockets]
        yield
        self.uvicorn.should_exit = True
        thread.join(HANG_SECONDS)

    def ask(self, text: str) -> bytes:
        """Send bytes on a connection of their own, and return all that is answered, without what always changes."""
        text = text.replace("TOKEN", self.token).replace("\n", "\r\n")
        with socket.create_connection(("127.0.0.1", self.port), HANG_SECONDS) as connection:
            connection.sendall(text.encode("latin-1"))
            answer = b""
            while received := connection.recv(65536):
                answer += received
        return CHANGING.sub(rb"\1", answer)

    @property
    def lines(self) -> list[str]:
        """The lines of its log, without ports and ids."""
        return [re.sub(r"request \w+", "", PORTS.sub("", line)) for line in self.log]


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    direct, through_asgi = Server(key, direct=True), Server(key, direct=False)
    # Events hold the token, and a token holds the second in which it was issued.
    through_asgi.token = direct.token
    with direct.running(), through_asgi.running():
        yield direct, through_asgi


@pytest.fixture(scope="module")
def impatient() -> Iterator[Server]:
    server = Server(rsa.generate_private_key(public_exponent=65537, key_size=2048), direct=True, receive_seconds=0.0)
    with server.running():
        yield server


HEAD = "Host: 127.0.0.1:8000\nAuthorization: Bearer TOKEN\n"
LAST = f"{HEAD}Connection: close\n\n"
PIPELINED = (
    f"GET /v1/users/1?slow HTTP/1.1\n{HEAD}\nGET /v1/users/2 HTTP/1.1\n{HEAD}\n"
    f"POST /v1/users/3 HTTP/1.1\nContent-Length: 2\n{HEAD}\n{{}}GET /v1/users/4 HTTP/1.1\n{LAST}"
)


@pytest.mark.parametrize(
    "text",
    [
        f"GET /v1/users/1 HTTP/1.1\n{LAST}",
        f"GET /v1/users/1?a=1&a=2&b= HTTP/1.1\n{LAST}",
        f"GET /v1/users/1? HTTP/1.1\n{LAST}",
        f"GET /v1/users/a%20b%2Fc HTTP/1.1\n{LAST}",
        f"GET /v1/users/1?a=%20 HTTP/1.1\n{LAST}",
        f"GET //v1//users HTTP/1.1\n{LAST}",
        f"GET /v1/users#part HTTP/1.1\n{LAST}",
        f"HEAD /v1/users/1 HTTP/1.1\n{LAST}",
        f"HEAD /v1/users/1?none HTTP/1.1\n{LAST}",
        f"HEAD /v1/users/1?empty HTTP/1.1\n{LAST}",
        f"HEAD /v1/a%20b?empty HTTP/1.1\n{LAST}",
        f"DELETE /v1/users/1?none HTTP/1.1\n{LAST}",
        f"DELETE /v1/users/1?unchanged HTTP/1.1\n{LAST}",
        f"OPTIONS * HTTP/1.1\n{LAST}",
        f"GET / HTTP/1.1\n{LAST}",
        f"GET /?a=1 HTTP/1.1\n{LAST}",
        f"GET /v1/users/1?missing HTTP/1.1\n{LAST}",
        f"GET /v1/users/1?cookies HTTP/1.1\nCookie: a=1; b=2\n{LAST}",
        f"GET /v1/users/1?large HTTP/1.1\n{LAST}",
        f"GET /v1/users/1 HTTP/1.1\nX-Many: 1\nX-Many: 2\nUser-Agent: test\n{LAST}",
        f"GET /v1/users/1 HTTP/1.1\nX-Forwarded-For: 10.0.0.1\n{LAST}",
        f"GET /v1/users/1 HTTP/1.1\nConnection: upgrade, close\nUpgrade: websocket\n{HEAD}\n",
        f"POST /v1/users HTTP/1.1\nContent-Length: 2\nContent-Type: application/json\n{LAST}{{}}",
        f"POST /v1/users HTTP/1.1\nTransfer-Encoding: chunked\nContent-Type: text/plain\n{LAST}2\nab\n0\n\n",
        f"POST /v1/users HTTP/1.1\n{LAST}",
        f"GET /v1/users/1 HTTP/1.0\n{HEAD}\n",
        f"GET /v1/users/1?raises HTTP/1.1\n{LAST}",
        PIPELINED,
        f"GET /v1/{'x' * 11_000} HTTP/1.1\n{LAST}",
        f"GET /other HTTP/1.1\n{LAST}",
        "GET /v1/health HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        "GET /v1/users/1 HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        "GET /v1/health HTTP/1.1\nHost: evil.example\nConnection: close\n\n",
        "GET /v1/health HTTP/1.1\nHost: evil.example\nHost: localhost\nConnection: close\n\n",
        "GET /v1/health HTTP/1.1\nConnection: close\n\n",
        "GET /local/.well-known/openid-configuration HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        "GET /%6cocal/.well-known/openid-configuration HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        "GET /v1/health\n\n",
    ],
    ids=lambda text: text.partition("\n")[0][:60],
)
def test_the_gateway_answers_alike_with_and_without_asgi(servers: tuple[Server, Server], text: str) -> None:
    seen = []
    for server in servers:
        server.function.events.clear()
        server.log.clear()
        seen.append((server.ask(text), server.function.events[:], server.lines))

    assert seen[0] == seen[1]


@pytest.mark.parametrize("path", ["/v1/users/1?empty", "/v1/a%20b?empty"])
def test_the_length_of_a_body_that_a_function_has_left_out_is_not_said(
    servers: tuple[Server, Server], path: str
) -> None:
    head, get = (servers[0].ask(f"{method} {path} HTTP/1.1\n{LAST}").lower() for method in ("HEAD", "GET"))

    assert b"etag: 1" in head
    assert b"content-length" not in head
    assert b"content-length: 0" in get


@pytest.mark.parametrize(
    "text",
    [
        f"GET /v1/\u00eb HTTP/1.1\n{LAST}",
        f"get /v1/users/1 HTTP/1.1\n{LAST}",
        f"POST /v1/users HTTP/1.1\nContent-Length: -5\n{LAST}",
        f"POST /v1/users HTTP/1.1\nContent-Length: {'9' * 5000}\n{LAST}",
        f"POST /v1/users HTTP/1.1\nContent-Length: 2\nContent-Length: 3\n{LAST}{{}}",
        f"POST /v1/users HTTP/1.1\nContent-Length: 5\nTransfer-Encoding: chunked\n{LAST}0\n\n",
        f"POST /v1/users HTTP/1.1\nTransfer-Encoding: chunked\n{LAST}zz\n",
    ],
    ids=lambda text: text[:50],
)
def test_what_is_not_valid_http_is_refused_in_the_gateways_form(servers: tuple[Server, Server], text: str) -> None:
    assert _message(servers[0].ask(text)) == (400, "Invalid HTTP request received.")


@pytest.mark.parametrize("method", ["DELETE", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/local/tokens"])
def test_a_method_that_is_not_served_is_refused_in_the_gateways_form(
    servers: tuple[Server, Server], method: str, path: str
) -> None:
    answer = servers[0].ask(f"{method} {path} HTTP/1.1\n{LAST}")

    assert _message(answer) == (405, "Method Not Allowed")
    assert b"\r\nallow: " in answer


@pytest.mark.parametrize("path", ["/", "/v1/health", "/local/tokens"])
def test_a_request_for_another_host_is_refused_in_the_gateways_form(servers: tuple[Server, Server], path: str) -> None:
    status, message = _message(servers[0].ask(f"GET {path} HTTP/1.1\nHost: evil.example\nConnection: close\n\n"))

    assert (status, message) == (400, "The local stack answers requests to 127.0.0.1 and localhost only.")


def _message(answer: bytes) -> tuple[int, str]:
    """Return the status of one answer, and its message."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), str(json.loads(body)["message"])


def test_no_function_can_write_a_header_with_a_line_break(servers: tuple[Server, Server]) -> None:
    answer = servers[0].ask(f"GET /v1/users/1?broken HTTP/1.1\n{LAST}")

    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"b: c" not in answer


def test_most_requests_take_the_short_way(servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = servers
    monkeypatch.setattr(server.uvicorn.config, "loaded_app", None)

    answer = server.ask(f"GET /v1/users/1?a=1 HTTP/1.1\n{LAST}")

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n/v1/users/1")


@pytest.mark.parametrize(
    "part",
    [
        "",
        "GET /v1/users/1 HTT",
        f"GET /v1/users/1 HTTP/1.1\n{HEAD}",
        f"POST /v1/users HTTP/1.1\nContent-Length: 9\n{HEAD}\n{{",
    ],
    ids=["nothing", "a line", "headers", "a body"],
)
def test_a_connection_that_never_sends_a_whole_request_is_closed(impatient: Server, part: str) -> None:
    assert impatient.ask(part) == b""


def test_a_connection_without_requests_is_kept_for_the_next_one(servers: tuple[Server, Server]) -> None:
    server, _ = servers
    text = f"GET /v1/users/1 HTTP/1.1\n{HEAD}\n".replace("TOKEN", server.token).replace("\n", "\r\n").encode()
    with socket.create_connection(("127.0.0.1", server.port), HANG_SECONDS) as connection:
        for _ in range(3):
            connection.sendall(text)
            answer = b""
            while not answer.endswith(b"/v1/users/1"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
