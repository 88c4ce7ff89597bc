"""The gateway: routes, authorises and forwards requests to functions, as an API Gateway HTTP API does."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol

import orjson

from dynashard_local.functions.local_function import FunctionError, OverloadedError, PayloadTooLargeError
from dynashard_local.gateway.events import (
    HttpRequest,
    HttpResponse,
    Invocation,
    WrongAnswerError,
    build_event,
    build_response,
)
from dynashard_local.gateway.tokens import Issuer, UnauthorizedError
from dynashard_local.routes import Route, RouteTable

MAX_BODY_BYTES = 10 * 1024 * 1024
MAX_HEADER_BYTES = 10_240
"""Request line and headers together."""
RETRY_AFTER = "1"
"""Seconds after which a refused call may be accepted."""


class Function(Protocol):
    """A function."""

    async def invoke(self, event: Mapping[str, Any], request_id: str, *, expensive: bool = False) -> Any:
        """Return the answer to an event; expensive events are refused before others."""
        ...


@dataclass(frozen=True)
class Gateway:
    """Routes, authorises and invokes. `report` gets one line about each failure that callers see as a 500."""

    routes: RouteTable
    issuer: Issuer
    functions: Mapping[str, Function]
    report: Callable[[str], None]
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: token_hex(8)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request. The gateway's own refusals are `{"message": ...}`, as on AWS."""
        request_id = self.new_id()
        origin, cors = request.header("origin"), self.routes.cors
        if request.method == "OPTIONS" and cors.applies and origin:
            response = HttpResponse(204, cors.preflight(origin))
        else:
            response = await self._routed(request, request_id)
            if cors.applies:
                # A gateway with CORS settings replaces the CORS headers of the function.
                kept = [line for line in response.headers if not line[0].startswith("access-control-")]
                response = HttpResponse(response.status, [*kept, *cors.lines(origin)], response.body)
        return HttpResponse(response.status, [*response.headers, ("apigw-requestid", request_id)], response.body)

    async def _routed(self, request: HttpRequest, request_id: str) -> HttpResponse:
        size = len(request.method) + len(request.path) + len(request.query)
        if size + sum(len(name) + len(value) for name, value in request.headers) > MAX_HEADER_BYTES:
            return refusal(431, "Request Header Fields Too Large")
        if len(request.body) > MAX_BODY_BYTES:
            return refusal(413, "Request Entity Too Large")
        found = self.routes.match(request.method, request.decoded_path)
        if found is None:
            return refusal(404, "Not Found")
        route, parameters = found
        claims, scopes = None, None
        if route.authorizer is not None:
            try:
                claims = self.issuer.verify(request.header("authorization"), route.authorizer.audience)
            except UnauthorizedError as error:
                return refusal(401, "Unauthorized", [("www-authenticate", _challenge(error.reason))])
            scopes = _scopes(claims)
            if route.scopes and not set(route.scopes) & set(scopes or ()):
                return refusal(403, "Forbidden")
        invocation = Invocation(request_id, self.clock(), route.key, parameters, claims, scopes)
        return await self._invoked(request, route, invocation)

    async def _invoked(self, request: HttpRequest, route: Route, invocation: Invocation) -> HttpResponse:
        event, function = build_event(request, invocation), self.functions[route.function]
        try:
            answer = await function.invoke(event, invocation.request_id, expensive=route.expensive)
            return build_response(answer)
        except PayloadTooLargeError:
            return refusal(413, "Request Entity Too Large")
        except OverloadedError:
            return refusal(503, "Service Unavailable", [("retry-after", RETRY_AFTER)])
        except (FunctionError, WrongAnswerError) as error:
            self.report(f"{request.method} {request.path}: {error} (request {invocation.request_id})")
            return refusal(500, "Internal Server Error")


def refusal(status: int, message: str, headers: Sequence[tuple[str, str]] = ()) -> HttpResponse:
    """Return an answer of the gateway itself."""
    return HttpResponse(status, [("content-type", "application/json"), *headers], orjson.dumps({"message": message}))


def _challenge(reason: str) -> str:
    return f'Bearer scope="" error="invalid_token" error_description="{reason}"' if reason else "Bearer"


def _scopes(claims: Mapping[str, Any]) -> list[str] | None:
    stated = claims.get("scope", claims.get("scp"))
    if isinstance(stated, str):
        return stated.split()
    return [str(entry) for entry in stated] if isinstance(stated, list) else None
