"""A client over REST and direct invocation, on an HTTP server in this process that serves what `make run` does."""

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
from dynashard_client import Client, Retries
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
from tests.roles import as_function
from tests.waiting import HANG_SECONDS

AUDIENCE = "dynashard"
ROUTES = RouteTable((Route("ANY /v1/{proxy+}", "api", Authorizer((AUDIENCE,))),))
WAYS = ("lambda", "rest")
RESOURCES = client_resources(ENTITIES)


class InProcess:
    """Calls a function in a thread of this process."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        assert request_id
        del expensive  # a process of its own has room for every call
        return await asyncio.to_thread(self._call, event)


@dataclass
class Network:
    """Replaces answers on their way back: each entry of `plan` is the status that one answer gets."""

    app: ASGIApp
    plan: list[int] = field(default_factory=list)
    requests: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.requests += 1
        if not self.plan:
            await self.app(scope, receive, send)
            return
        status = self.plan.pop(0)
        if status:  # The request is executed only before a 5xx, which leaves its outcome unknown.
            if status >= 500:
                await self.app(scope, receive, _nowhere)
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"{}"})
        else:
            await self.app(scope, receive, send)


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
        policy = Retries(**{"sleep": self.pauses.append, "random": lambda: 0.5, **retries})
        if way == "rest":
            token = self.issuer.issue({"tenant_id": tenant})
            return Client.rest(self.url, token=token, resources=RESOURCES, tenant=tenant, retries=policy)
        client = lambda_client(self.url)
        return Client.lambda_("commands", tenant=tenant, client=client, resources=RESOURCES, retries=policy)


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
