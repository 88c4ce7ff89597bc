"""Clients that send requests to the API: over HTTP to the local stack, or to its function in this process."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from dynashard.transport import connect
from dynashard_local.gateway.events import HttpRequest, Invocation, build_event, build_response
from dynashard_serving.access import SCOPE
from dynashard_serving.api.app import App, build_app
from dynashard_serving.api.request_log import CRITICAL
from dynashard_serving.api.settings import Settings
from dynashard_serving.domain import declared

_TIMEOUT: Final = 40.0
TABLES: Final = ("truth-items", "truth-topology", "truth-idempotency")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. Its status is 0 if none came."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def document(self) -> Any:
        """The JSON document of the body; an empty one without a body."""
        return json.loads(self.body) if self.body else {}


class ApiClient(Protocol):
    """Sends requests of tenants to an API. Threads do not share a client."""

    def send(self, tenant: str, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send a request once."""
        ...


class HttpClient:
    """Sends requests over one HTTP connection, which is kept open.

    Args:
        url: the URL of the local stack.
    """

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._host, timeout=_TIMEOUT)
        self._tokens: dict[str, str] = {}

    def send(self, tenant: str, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """See `ApiClient.send`."""
        if tenant not in self._tokens:
            asked = json.dumps({"tenant_id": tenant}).encode()
            self._tokens[tenant] = self._sent("POST", "/local/tokens", asked, {}).document["token"]
        sent = {"Authorization": f"Bearer {self._tokens[tenant]}", **headers}
        return self._sent(method, path, body, sent)

    def _sent(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        try:
            self._connection.request(method, path, body or None, dict(headers))
            answer = self._connection.getresponse()
            received = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return Reply(0)
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, received)


class FunctionClient:
    """Calls the API function with the events that API Gateway would send it.

    Args:
        app: the API. Threads may share it.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._scopes = " ".join(declared().declarations.scopes)

    def send(self, tenant: str, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """See `ApiClient.send`."""
        bare, _, query = path.partition("?")
        sent = [("host", "127.0.0.1:8000"), *((name.lower(), value) for name, value in headers.items())]
        request = HttpRequest(method=method, path=bare, query=query, headers=sent, body=body)
        claims = {"tenant_id": tenant, "sub": "truth", SCOPE: self._scopes}
        event = build_event(request, Invocation("truth", 1_780_000_000.0, "ANY /v1/{proxy+}", claims=claims))
        response = build_response(self._app.handle(event))
        return Reply(response.status, {name.lower(): value for name, value in response.headers}, response.body)


def app_on(endpoint: str) -> App:
    """Return an API on the tables of an engine."""
    table, topology, idempotency = TABLES
    settings = Settings(
        table=table,
        topology_table=topology,
        idempotency_table=idempotency,
        environment="local",
        cursor_keys=("a key of the bench",),
        growth_mode="off",
        # A line for each request and a traceback for each injected failure would hide all other output.
        log_level=CRITICAL,
    )
    transport = connect(endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106 - checks none
    return build_app(settings, transport)
