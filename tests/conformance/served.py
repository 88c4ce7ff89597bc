"""Serve the API with its queues over HTTP in this process, for a client that only knows its OpenAPI document."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard.transport import Transport
from dynashard_local.gateway.http_api import Gateway
from dynashard_local.gateway.server import build_app as build_server
from dynashard_local.gateway.tokens import Issuer
from dynashard_local.routes import Authorizer, Route, RouteTable
from dynashard_serving.api.app import build_app as build_api
from dynashard_serving.api.queue_sender import QueueSender
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.clients.clients_on_engine import InProcess
from tests.engine.writer.queue_world import INTAKE, OPERATIONS, QueueWorld
from tests.roles import as_function
from tests.waiting import HANG_SECONDS

AUDIENCE = "dynashard"
ROUTES = RouteTable(
    (Route("GET /v1/health", "api"), Route("ANY /v1/{proxy+}", "api", Authorizer((AUDIENCE,)))),
)


@dataclass(frozen=True)
class ServedApi:
    """An API that is served over HTTP.

    Attributes:
        url: its URL.
        token: a token of one tenant.
        faults: a line for each answer that was a 500 without a problem document.
    """

    url: str
    token: str
    faults: list[str]


@contextmanager
def served_api(transport: Transport, table: str, idempotency: str, folder: Path) -> Iterator[ServedApi]:
    """Serve the API on this table and a free port until the end of the block."""
    queues = QueueWorld(transport, table, folder)
    settings = settings_of(table, idempotency, queue_url=INTAKE, operations_queue_url=OPERATIONS)
    allowed = as_function("api", transport, table, TOPOLOGY, idempotency)
    api = build_api(settings, allowed, sender=QueueSender(lambda: queues.sqs))
    issuer = Issuer(rsa.generate_private_key(public_exponent=65537, key_size=2048), "http://127.0.0.1/local", AUDIENCE)
    faults: list[str] = []
    ready = threading.Event()
    gateway = Gateway(ROUTES, issuer, {"api": InProcess(api.handle)}, report=faults.append)
    app = build_server(gateway, issuer, tenant_claim="tenant_id", ready=ready.set)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(HANG_SECONDS)
    while not server.started:
        ready.wait(0.01)
    [port] = [listener.getsockname()[1] for each in server.servers for listener in each.sockets]
    yield ServedApi(f"http://127.0.0.1:{port}", issuer.issue({"tenant_id": "abc"}), faults)
    server.should_exit = True
    thread.join(HANG_SECONDS)
