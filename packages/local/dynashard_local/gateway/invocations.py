"""Lambda's API for synchronous calls, as far as clients of direct invocation use it.

    POST /2015-03-31/functions/NAME/invocations

Any client of Lambda with `http://127.0.0.1:8000` as its endpoint can call it. A request must carry a signature, so that
web pages cannot call it without a preflight request; signatures are not verified.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from dynashard_local.functions.local_function import (
    MAX_PAYLOAD_BYTES,
    FunctionError,
    OverloadedError,
    PayloadTooLargeError,
)
from dynashard_local.gateway.http_api import Function
from dynashard_serving.shedding import is_expensive

PATH: Final = "/2015-03-31/functions/{name}/invocations"
COMMANDS_NAME: Final = "commands"
"""A short name of that function, besides its name in the template."""
_SIGNED: Final = "AWS4-HMAC-SHA256 "


@dataclass(frozen=True)
class Invoker:
    """Answers invocations of functions, by each of their names. `report` gets one line about each that failed."""

    functions: Mapping[str, Function]
    report: Callable[[str], None]
    new_id: Callable[[], str] = lambda: token_hex(16)

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        request_id = self.new_id()
        try:
            name = self._wanted(request)
            event = await _event(request)
        except _RefusedError as refused:
            return _answer_to(refused, request_id)
        if request.headers.get("x-amz-invocation-type") == "DryRun":
            return Response(status_code=204, headers=_headers(request_id))
        return await self._invoked(name, event, request_id)

    def _wanted(self, request: Request) -> str:
        if not request.headers.get("authorization", "").startswith(_SIGNED):
            raise _RefusedError(403, "MissingAuthenticationTokenException", "Sign the request, with any credentials.")
        name: str = request.path_params["name"].rpartition(":function:")[2]
        if name not in self.functions:
            raise _RefusedError(404, "ResourceNotFoundException", f"Function not found: {name}")
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        if kind not in ("RequestResponse", "DryRun"):
            message = f"{kind} is not available locally: use RequestResponse."
            raise _RefusedError(400, "InvalidParameterValueException", message)
        return name

    async def _invoked(self, name: str, event: Any, request_id: str) -> Response:
        started = time.monotonic()
        try:
            answer = await self.functions[name].invoke(event, request_id, expensive=is_expensive(event))
        except PayloadTooLargeError:
            return _answer_to(_too_large(), request_id)
        except OverloadedError:
            refused = _RefusedError(429, "TooManyRequestsException", "Rate Exceeded.")
            return _answer_to(refused, request_id)
        except FunctionError as error:
            seconds = time.monotonic() - started
            self.report(f"invocation of {name}: {error} after {seconds:.1f} s (request {request_id})")
            failed = {"errorType": "Runtime.Error", "errorMessage": str(error)}
            return _answer(orjson.dumps(failed), _headers(request_id) | {"X-Amz-Function-Error": "Unhandled"})
        return _answer(orjson.dumps(answer), _headers(request_id))


def _answer(body: bytes, headers: Mapping[str, str]) -> Response:
    return Response(body, headers=dict(headers), media_type="application/json")


def _headers(request_id: str) -> dict[str, str]:
    return {"X-Amz-Executed-Version": "$LATEST", "X-Amzn-RequestId": request_id}


class _RefusedError(Exception):
    """Lambda refuses the request."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


async def read_body(request: Request, most: int) -> bytes:
    """Return the body, or a little more than `most` bytes of a larger one.

    A larger body is read to its end, so that the client can read the refusal, but not kept.
    """
    body = bytearray()
    async for chunk in request.stream():
        if len(body) <= most:
            body += chunk
    return bytes(body)


async def _event(request: Request) -> Any:
    body = await read_body(request, MAX_PAYLOAD_BYTES)
    if len(body) > MAX_PAYLOAD_BYTES:
        raise _too_large()
    try:
        return orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise _RefusedError(400, "InvalidRequestContentException", f"The payload is not JSON: {error}") from None


def _too_large() -> _RefusedError:
    return _RefusedError(413, "RequestTooLargeException", "The payload is over 6 MB.")


def _answer_to(refused: _RefusedError, request_id: str) -> Response:
    body = orjson.dumps({"Type": "User", "Message": str(refused)})
    headers = {"X-Amzn-ErrorType": refused.kind, "X-Amzn-RequestId": request_id}
    return Response(body, status_code=refused.status, headers=headers, media_type="application/json")
