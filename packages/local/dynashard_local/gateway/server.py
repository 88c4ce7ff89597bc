"""HTTP on 127.0.0.1: the gateway, the token issuer, and direct invocation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dynashard_local.bus.store import EventStore
from dynashard_local.gateway.connections import LATIN, OWN, access_line, header_lines
from dynashard_local.gateway.description import Description
from dynashard_local.gateway.event_stream import PATH as EVENTS
from dynashard_local.gateway.event_stream import EventStream
from dynashard_local.gateway.events import HttpRequest
from dynashard_local.gateway.first_steps import first_steps
from dynashard_local.gateway.http_api import MAX_BODY_BYTES, Gateway
from dynashard_local.gateway.invocations import PATH, Invoker, read_body
from dynashard_local.gateway.landing import landing_page
from dynashard_local.gateway.tokens import LIFETIME_SECONDS, Issuer
from dynashard_local.hosts import HOSTS, names_us
from dynashard_local.routes import LOCAL_PAGES
from dynashard_serving.access import SCOPE
from dynashard_serving.tenants import DEFAULT_TENANTS, TenantRule

MAX_TOKEN_REQUEST_BYTES = 64 * 1024
"""More than the header that carries a token may have."""


class TokenRequest(BaseModel):
    """Body of `POST /local/tokens`. `claims` may set or replace any claim.

    Without `scopes`, the token has every scope that the API names.
    """

    model_config = ConfigDict(extra="forbid")

    tenant_id: str = Field(min_length=1)
    subject: str = Field(default="local", min_length=1)
    scopes: list[str] | None = Field(default=None, max_length=1000)
    claims: dict[str, Any] = Field(default_factory=dict)
    expires_in: int = Field(default=LIFETIME_SECONDS, ge=1, le=7 * 24 * 3600)


def build_app(
    gateway: Gateway,
    issuer: Issuer,
    *,
    tenant_claim: str,
    tenants: TenantRule = DEFAULT_TENANTS,
    ready: Callable[[], None],
    greet: Callable[[str], None] = lambda _: None,
    url: str = "",
    invoker: Invoker | None = None,
    events: EventStore | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        gateway: answers everything outside `/local/`.
        issuer: issues tokens under `/local/`, and publishes its key.
        tenant_claim: the claim that carries the tenant.
        tenants: the pattern of tenants. `claims` may set others, to see them refused.
        ready: called once, when requests are accepted.
        greet: gets commands to try at `url`, when the API has described itself.
        url: where this machine reaches the stack.
        invoker: answers direct invocations.
        events: the events of the local bus.
        log: gets a line about each request.
    """
    description = Description(gateway)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        ready()
        greeting = asyncio.create_task(greeted())
        yield
        greeting.cancel()

    async def greeted() -> None:
        greet(await first_steps(description, url))

    async def landing(request: Request) -> Response:
        return HTMLResponse(landing_page(await first_steps(description, str(request.base_url).rstrip("/"))))

    sign_in = _SignIn(issuer, tenant_claim, tenants, description)
    app = Starlette(
        routes=[
            Route("/", landing),
            Route("/local/tokens", sign_in.token, methods=["POST"]),
            Route("/local/.well-known/openid-configuration", sign_in.discovery),
            Route("/local/.well-known/jwks.json", sign_in.jwks),
            *([] if invoker is None else [Route(PATH, invoker.answer, methods=["POST"])]),
            *([] if events is None else [Route(EVENTS, EventStream(events).answer)]),
        ],
        # A front end in development signs in from a port of its own.
        middleware=[
            Middleware(CORSMiddleware, allow_origin_regex=LOCAL_PAGES, allow_methods=["POST"], allow_headers=["*"])
        ],
        exception_handlers={HTTPException: _not_served},
        lifespan=lifespan,
    )
    # The pattern of a route would not match a path with a line break.
    endpoint = _Endpoint(gateway)
    app.router.default = endpoint
    return _Front(app, endpoint, log)


@dataclass(frozen=True, slots=True)
class _SignIn:
    """Issues tokens for every request, and publishes the issuer's key."""

    issuer: Issuer
    tenant_claim: str
    tenants: TenantRule
    description: Description

    async def token(self, request: Request) -> Response:
        try:
            body = await read_body(request, MAX_TOKEN_REQUEST_BYTES)
            if len(body) > MAX_TOKEN_REQUEST_BYTES:
                return _json({"message": f"Send at most {MAX_TOKEN_REQUEST_BYTES} bytes."}, status=413)
            wanted = TokenRequest.model_validate_json(body)
        except ValidationError as error:
            return _refused(
                *(
                    {"field": ".".join(map(str, problem["loc"])), "message": problem["msg"]}
                    for problem in error.errors(include_url=False)
                )
            )
        if self.tenant_claim not in wanted.claims and not self.tenants.allows(wanted.tenant_id):
            message = f"The API accepts tenants that match {self.tenants.pattern}."
            return _refused({"field": "tenant_id", "message": message})
        scopes = await self.description.scopes() if wanted.scopes is None else wanted.scopes
        claims = {self.tenant_claim: wanted.tenant_id, SCOPE: " ".join(scopes)} | wanted.claims
        token = self.issuer.issue(claims, subject=wanted.subject, lifetime_seconds=wanted.expires_in)
        return _json({"token": token, "token_type": "Bearer", "expires_in": wanted.expires_in})

    async def discovery(self, _: Request) -> Response:
        return _json(self.issuer.discovery())

    async def jwks(self, _: Request) -> Response:
        return _json(self.issuer.jwks())


def _refused(*problems: Mapping[str, str]) -> Response:
    return _json({"message": 'Send {"tenant_id": "..."}.', "errors": problems}, status=422)


class _Front:
    """The gateway's requests go straight to it, and all others through Starlette, whose layers cost more than they do.

    Requests for another host are refused: a web page may resolve its own name to 127.0.0.1, and its requests carry that
    name.
    """

    def __init__(self, local: ASGIApp, gateway: ASGIApp, log: Callable[[str], None]) -> None:
        self._local = local
        self._gateway = gateway
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._local(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._log(access_line(_head(scope), (scope["client"] or ("-", 0))[1], message["status"]))
            await send(message)

        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        own = scope["path"] == "/" or scope["path"].startswith(OWN)
        app = _OTHER_HOST if not names_us(host) else self._local if own else self._gateway
        await app(scope, receive, sending)


class _Endpoint:
    """The gateway as an ASGI application, which accepts every method."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = await _read(scope, receive)
        except ClientDisconnect:
            return
        response = await self._gateway.answer(request)
        headers = header_lines(response, request.method)
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})


async def _read(scope: Scope, receive: Receive) -> HttpRequest:
    head = _head(scope)
    if any(name in ("content-length", "transfer-encoding") for name, _ in head.headers):
        return replace(head, body=await read_body(Request(scope, receive), MAX_BODY_BYTES))
    return head


def _head(scope: Scope) -> HttpRequest:
    """Return a request without its body."""
    return HttpRequest(
        method=scope["method"],
        path=scope["raw_path"].decode(LATIN),
        query=scope["query_string"].decode(LATIN),
        headers=[(name.decode(LATIN), value.decode(LATIN)) for name, value in scope["headers"]],
        source_ip=scope["client"][0] if scope["client"] else "127.0.0.1",
        protocol=f"HTTP/{scope['http_version']}",
    )


def _not_served(_: Request, error: Exception) -> Response:
    """Answer requests for a path or by a method that the stack itself does not serve, in the gateway's form."""
    refused = error if isinstance(error, HTTPException) else HTTPException(500)
    return _json({"message": refused.detail}, status=refused.status_code, headers=refused.headers)


def _json(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status_code=status, headers=headers, media_type="application/json")


_OTHER_HOST: Final = _json({"message": f"The local stack answers requests to {' and '.join(HOSTS)} only."}, status=400)
