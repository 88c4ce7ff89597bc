"""Clients over REST and direct invocation, on an HTTP server in this process that serves what `make run` does."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from botocore.config import Config
from botocore.session import get_session
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dynashard.transport import Transport
from dynashard_client import AsyncClient, Client, Retries
from dynashard_local.gateway.http_api import Gateway
from dynashard_local.gateway.invocations import Invoker
from dynashard_local.gateway.server import build_app as build_server
from dynashard_local.gateway.tokens import Issuer
from dynashard_local.routes import Authorizer, Route, RouteTable
from dynashard_serving.api.app import build_app as build_api
from dynashard_serving.client_resources import client_resources
from dynashard_serving.commands.handler import build_commands
from tests.domain_served import ENTITIES
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.clients.async_face import driven
from tests.roles import as_function
from tests.waiting import HANG_SECONDS

AUDIENCE = "dynashard"
ROUTES = RouteTable((Route("ANY /v1/{proxy+}", "api", Authorizer((AUDIENCE,))),))
WAYS = ("lambda", "rest", "async lambda", "async rest")
"""Both ways to a backend, under both faces of the client."""
RESOURCES = client_resources(ENTITIES)


class InProcess:
    """Calls a function in a thread of this process."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        assert request_id
        del expensive  # a process of its own has room for every call
        return await asyncio.to_thread(self._call, event)


HELD = -1
"""In place of a status: the request is executed, and no answer comes as long as its connection is open."""
HALF = -2
"""The same, after a part of an answer."""


@dataclass
class Network:
    """Replaces answers on their way back: each entry of `plan` is the status that one answer gets.

    `arrived` is set when the first held request was executed, and `left` when the client has closed its connection.
    `most` is how many requests were under way at once.
    """

    app: ASGIApp
    plan: list[int] = field(default_factory=list)
    requests: int = 0
    under_way: int = 0
    most: int = 0
    peers: set[Any] = field(default_factory=set)
    arrived: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def reset(self) -> None:
        """Forget what was counted and planned."""
        self.plan.clear()
        self.peers.clear()
        self.requests = self.most = 0
        self.arrived.clear()
        self.left.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.requests += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.peers.add(scope["client"])
        try:
            await self._answer(self.plan.pop(0) if self.plan else 0, scope, receive, send)
        finally:
            self.under_way -= 1

    async def _answer(self, status: int, scope: Scope, receive: Receive, send: Send) -> None:
        if not status:
            await self.app(scope, receive, send)
            return
        if status in (HELD, HALF) or status >= 500:  # The request is executed only if its outcome stays unknown.
            await self.app(scope, receive, _nowhere)
        if status in (HELD, HALF):
            if status == HALF:
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
                await send({"type": "http.response.body", "body": b"{", "more_body": True})
            self.arrived.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
            return
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})


async def _nowhere(_: Message) -> None:
    """Where lost answers go."""


@dataclass
class Served:
    """A backend that is served over HTTP."""

    url: str
    issuer: Issuer
    network: Network
    pauses: list[float] = field(default_factory=list)

    def client(self, way: str, tenant: str = "abc", **retries: Any) -> Client:
        policy = self.retries(**retries)
        if way == "async rest":
            return driven(self.async_rest(tenant, **retries))
        if way == "rest":
            return Client.rest(self.url, token=self.token(tenant), resources=RESOURCES, tenant=tenant, retries=policy)
        given: Any = {"tenant": tenant, "client": lambda_client(self.url), "resources": RESOURCES, "retries": policy}
        if way == "async lambda":
            return driven(AsyncClient.lambda_("commands", **given))
        return Client.lambda_("commands", **given)

    def async_rest(
        self, tenant: str = "abc", *, timeout: float = 35.0, connections: int = 100, **retries: Any
    ) -> AsyncClient:
        token, policy = self.token(tenant), self.retries(**retries)
        return AsyncClient.rest(
            self.url,
            token=token,
            resources=RESOURCES,
            tenant=tenant,
            retries=policy,
            timeout=timeout,
            connections=connections,
        )

    def token(self, tenant: str) -> str:
        return self.issuer.issue({"tenant_id": tenant})

    def retries(self, **chosen: Any) -> Retries:
        """The default policy, whose pauses are noted rather than waited for."""

        async def noted(seconds: float) -> None:
            self.pauses.append(seconds)

        return Retries(**{"sleep": self.pauses.append, "sleep_async": noted, "random": lambda: 0.5, **chosen})


def lambda_client(url: str) -> Any:
    """The SDK's own client, pointed at the local server."""
    return get_session().create_client(
        "lambda",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106
        config=Config(retries={"total_max_attempts": 1, "mode": "standard"}),
    )


@contextmanager
def served(transport: Transport, table: str, idempotency: str) -> Iterator[Served]:
    """Serve the backend of this table on a free port within the block."""
    settings = settings_of(table, idempotency)
    api = build_api(settings, as_function("api", transport, table, TOPOLOGY, idempotency))
    commands = build_commands(settings, as_function("commands", transport, table, TOPOLOGY, idempotency))
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    issuer = Issuer(key, "http://127.0.0.1/local", AUDIENCE)
    lines: list[str] = []
    gateway = Gateway(ROUTES, issuer, {"api": InProcess(api.handle)}, report=lines.append)
    invoker = Invoker({"commands": InProcess(commands.answer)}, report=lines.append)
    ready = threading.Event()
    app = build_server(gateway, issuer, tenant_claim="tenant_id", ready=ready.set, invoker=invoker)
    network = Network(app)
    server = uvicorn.Server(uvicorn.Config(network, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(HANG_SECONDS)
    while not server.started:
        ready.wait(0.01)
    [port] = [listener.getsockname()[1] for each in server.servers for listener in each.sockets]
    yield Served(f"http://127.0.0.1:{port}", issuer, network)
    server.should_exit = True
    thread.join(HANG_SECONDS)
