"""Converts HTTP requests to API Gateway events, and answers of functions to HTTP.

Both follow HTTP APIs with payload format 2.0, quirks included: the path arrives with every escape decoded but
`%25` and ends at a decoded `?`, repeated headers and query parameters are joined with commas, cookies are apart,
and a body is base64 unless its content type is one of a short list of text types.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import orjson

from dynashard_local.account import ACCOUNT_ID

API_ID = "local"
WITHOUT_BODY: Final = frozenset({*range(100, 200), HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
"""Statuses of answers that have no body, and so neither a length nor a type of it."""
_TEXT_TYPES = frozenset({"application/json", "application/xml", "application/javascript"})

_NOT_UTF8: Final = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as `surrogateescape` decodes them."""


def _escaped(byte: re.Match[str]) -> str:
    return f"%{ord(byte[0]) - 0xDC00:02X}"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `path` and `query` are as they were on the wire."""

    method: str
    path: str
    query: str = ""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    source_ip: str = "127.0.0.1"
    protocol: str = "HTTP/1.1"

    @property
    def decoded_path(self) -> str:
        """The path that API Gateway matches and passes on.

        Escapes that are not UTF-8 stay, and the function refuses them: replaced, several paths would lead to one item.
        """
        if "%" not in self.path:
            return self.path.split("?", 1)[0]
        path = unquote(self.path.replace("%25", "%2525"), errors="surrogateescape")
        return _NOT_UTF8.sub(_escaped, path).split("?", 1)[0]

    def header(self, name: str) -> str:
        """Return the first value of a header, or an empty text. `name` is in lower case."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return ""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What API Gateway adds to a request: its id, time, route, and the caller's verified claims."""

    request_id: str
    epoch_seconds: float
    route_key: str = "$default"
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Any] | None = None
    scopes: Sequence[str] | None = None
    stage: str = "$default"


class WrongAnswerError(Exception):
    """API Gateway cannot convert the function's answer to HTTP; the caller gets a 500."""


def build_event(request: HttpRequest, invocation: Invocation) -> dict[str, Any]:
    """Return the event for a request, in payload format 2.0."""
    context = _request_context(request, invocation)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": invocation.route_key,
        "rawPath": context["http"]["path"],
        "rawQueryString": request.query,
        "headers": _event_headers(request),
        "requestContext": context,
        "isBase64Encoded": False,
    }
    cookies = [part.strip() for key, value in request.headers if key.lower() == "cookie" for part in value.split(";")]
    if cookies:
        event["cookies"] = cookies
    if request.query:
        event["queryStringParameters"] = _joined(parse_qsl(request.query, keep_blank_values=True))
    if invocation.path_parameters:
        event["pathParameters"] = dict(invocation.path_parameters)
    if request.body:
        event["body"], event["isBase64Encoded"] = _event_body(request)
    return event


def _request_context(request: HttpRequest, invocation: Invocation) -> dict[str, Any]:
    host = request.header("host")
    context: dict[str, Any] = {
        "accountId": ACCOUNT_ID,
        "apiId": API_ID,
        "domainName": host,
        "domainPrefix": host.split(".")[0],
        "http": {
            "method": request.method,
            "path": request.decoded_path,
            "protocol": request.protocol,
            "sourceIp": request.source_ip,
            "userAgent": request.header("user-agent"),
        },
        "requestId": invocation.request_id,
        "routeKey": invocation.route_key,
        "stage": invocation.stage,
        "time": _time_text(int(invocation.epoch_seconds)),
        "timeEpoch": int(invocation.epoch_seconds * 1000),
    }
    if invocation.claims is not None:
        claims = {name: claim_text(value) for name, value in invocation.claims.items()}
        scopes = None if invocation.scopes is None else list(invocation.scopes)
        context["authorizer"] = {"jwt": {"claims": claims, "scopes": scopes}}
    return context


@lru_cache(maxsize=1)
def _time_text(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")


def claim_text(value: Any) -> str:
    """Return a claim as API Gateway passes it on: always text, a list as `[a b]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{' '.join(claim_text(entry) for entry in value)}]"
    return orjson.dumps(value).decode()


def build_response(answer: Any) -> HttpResponse:
    """Return the HTTP response for a function's answer. An answer without `statusCode` is the body of a 200.

    Raises:
        WrongAnswerError: the answer has another format.
    """
    if not isinstance(answer, Mapping) or "statusCode" not in answer:
        body = answer.encode() if isinstance(answer, str) else orjson.dumps(answer)
        return HttpResponse(200, [("content-type", "application/json")], body)
    headers = answer.get("headers") or {}
    cookies = answer.get("cookies") or []
    if not isinstance(headers, Mapping) or not isinstance(cookies, list):
        raise WrongAnswerError("headers must be an object, cookies a list")
    lines = [(str(name).lower(), _header_text(value)) for name, value in headers.items()]
    status = _status(answer["statusCode"])
    if status not in WITHOUT_BODY and all(name != "content-type" for name, _ in lines):
        lines.append(("content-type", "text/plain;charset=utf-8"))
    lines.extend(("set-cookie", str(cookie)) for cookie in cookies)
    return HttpResponse(status, lines, _answer_body(answer))


def _status(value: Any) -> int:
    try:
        status = int(value)
    except (TypeError, ValueError):
        raise WrongAnswerError(f"statusCode {value!r} is not a number") from None
    if not 100 <= status <= 599:  # noqa: PLR2004 - HTTP's own range
        raise WrongAnswerError(f"statusCode {status} is not between 100 and 599")
    return status


def _header_text(value: Any) -> str:
    if isinstance(value, str | int | float):
        return orjson.dumps(value).decode() if isinstance(value, bool) else str(value)
    raise WrongAnswerError(f"a header's value must be text, not {type(value).__name__}")


def _answer_body(answer: Mapping[str, Any]) -> bytes:
    body = answer.get("body") or ""
    if not isinstance(body, str):
        raise WrongAnswerError(f"body must be text, not {type(body).__name__}")
    if not answer.get("isBase64Encoded"):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        raise WrongAnswerError("isBase64Encoded is set, and body is not base64") from None


def _event_headers(request: HttpRequest) -> dict[str, str]:
    headers = _joined([(key.lower(), value) for key, value in request.headers if key.lower() != "cookie"])
    port = request.header("host").rpartition(":")[2]
    return headers | {
        "content-length": str(len(request.body)),
        "x-forwarded-for": request.source_ip,
        "x-forwarded-port": port if port.isdigit() else "80",
        "x-forwarded-proto": "http",
    }


def _event_body(request: HttpRequest) -> tuple[str, bool]:
    content_type = request.header("content-type").split(";")[0].strip().lower()
    if content_type in _TEXT_TYPES or content_type.startswith("text/"):
        return request.body.decode(errors="replace"), False
    return base64.b64encode(request.body).decode(), True


def _joined(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for key, value in pairs:
        joined[key] = f"{joined[key]},{value}" if key in joined else value
    return joined
