"""A request, read from an API Gateway event of an HTTP API (payload format 2.0)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.access import SCOPE, Caller
from dynashard_serving.api.body import body_of, json_value
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.response import JSON
from dynashard_serving.documents import Document
from dynashard_serving.limits import (
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    MAX_PARAMETERS,
    MAX_PATH_BYTES,
    MAX_QUERY_BYTES,
    seconds_left,
)
from dynashard_serving.tenants import DEFAULT_TENANTS, TenantRule

_DEFAULT_STAGE: Final = "$default"


class TenantClaim(Struct, frozen=True):
    """The claim of a token that names the tenant, the rule for tenants, and the claim that lists the scopes."""

    name: str
    rule: TenantRule = DEFAULT_TENANTS
    scopes: str = SCOPE


class ApiRequest(Struct, frozen=True):
    """One authenticated request.

    Attributes:
        method: `GET`, `POST`, ...
        path: the path without its stage, as the gateway gave it.
        query: names and values in the order they came, decoded.
        headers: by lower-case name.
        body: the raw body, empty if there is none.
        tenant: the tenant that the verified claims name.
        caller: who sends the request, by the same claims.
        context: Lambda's context object.
        request_id: the gateway's id of the request.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes
    tenant: str
    caller: Caller
    context: Any = None
    request_id: str = ""

    @classmethod
    def from_event(
        cls,
        event: Mapping[str, Any],
        path: str,
        tenant_claim: TenantClaim,
        context: Any = None,
        *,
        max_body: int = MAX_BODY_BYTES,
    ) -> Self:
        """Read a request whose token API Gateway has verified, or refuse it (400, 401, 403, 413)."""
        tenant = tenant_of(event, tenant_claim)
        refuse_long(event, path)
        headers = headers_of(event)
        return cls(
            method=str(event["requestContext"]["http"]["method"]).upper(),
            path=path,
            tenant=tenant,
            caller=Caller(tenant, event["requestContext"]["authorizer"]["jwt"]["claims"], tenant_claim.scopes),
            query=query_of(event),
            headers=headers,
            body=body_of(event, headers, max_body),
            context=context,
            request_id=str(event["requestContext"].get("requestId", "")),
        )

    @property
    def seconds_left(self) -> float:
        """How long the request can still take before Lambda ends it."""
        return seconds_left(self.context)

    def json(self, accepted: Sequence[str] = (JSON,)) -> Any:
        """Return the body as JSON; see `body.json_value`."""
        return json_value(self.body, self.headers, accepted)

    def json_object(self, accepted: Sequence[str] = (JSON,)) -> Document:
        """Return the body as a JSON object, or refuse it as `json` does; another value is refused too (422)."""
        document = self.json(accepted)
        if not isinstance(document, dict):
            raise ValidationFailedError(FieldError("", "The body must be a JSON object.", "object_type"))
        return document


def is_http_event(event: Any) -> bool:
    """Return whether an event is of an HTTP API, in the format 2.0."""
    try:
        context = event["requestContext"]
        path, stage, method = event["rawPath"], context["stage"], context["http"]["method"]
    except (KeyError, TypeError):
        return False
    return isinstance(path, str) and isinstance(stage, str) and isinstance(method, str)


def request_id_of(event: Any, context: Any) -> str:
    """Return the gateway's id of a request, else Lambda's of the invocation, whatever the event is."""
    request = event.get("requestContext") if isinstance(event, dict) else None
    found = request.get("requestId") if isinstance(request, dict) else None
    return str(found or getattr(context, "aws_request_id", None) or "unknown")


def path_of(event: Mapping[str, Any]) -> str:
    """Return the path of an event of an HTTP API, without its stage; a test compares it with Powertools'."""
    path, stage = str(event["rawPath"]), event["requestContext"]["stage"]
    return path if stage == _DEFAULT_STAGE else path[len(f"/{stage}") :]


def tenant_of(event: Mapping[str, Any], claim: TenantClaim) -> str:
    """Return the tenant in the claims that API Gateway verified. Refuse missing claims (401) or tenants (403)."""
    try:
        claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    except (KeyError, TypeError):
        claims = None
    if not isinstance(claims, dict):
        raise ProblemError(
            "unauthenticated",
            "Send a bearer token in the Authorization header.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    tenant = claims.get(claim.name)
    if tenant is None or not claim.rule.allows(tenant):
        raise ProblemError(
            "tenant_missing",
            f"The claim {claim.name!r} of the token does not name a tenant; it must be a string that matches "
            f"{claim.rule.pattern}.",
        )
    return str(tenant)


def refuse_long(event: Mapping[str, Any], path: str) -> None:
    """Refuse a path or headers that are longer than an HTTP API passes on (400)."""
    given = event.get("headers") or {}
    headers = len("".join(map(str, (*given, *given.values()))))
    for code, part, length, most in (
        ("malformed_path", "path", len(path), MAX_PATH_BYTES),
        ("malformed_header", "header section", headers, MAX_HEADER_BYTES),
    ):
        if length > most:
            raise ProblemError(code, f"The {part} has {length} bytes; at most {most} are allowed.")


def query_of(event: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the query's names and values. Names may repeat. Escapes that are not UTF-8 are refused (400)."""
    raw = event.get("rawQueryString")
    if not raw:
        return ()
    if len(raw) > MAX_QUERY_BYTES:
        raise ProblemError(
            "malformed_query", f"The query string has {len(raw)} bytes; at most {MAX_QUERY_BYTES} are allowed."
        )
    try:
        raw.encode()
        return tuple(parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS))
    except ValueError as error:
        raise ProblemError(
            "malformed_query", f"The query string is not UTF-8, or has more than {MAX_PARAMETERS} parameters."
        ) from error


def headers_of(event: Mapping[str, Any]) -> dict[str, str]:
    """The headers by lower-case name."""
    return {str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items()}


def caller_of(event: Mapping[str, Any]) -> str | None:
    """Return the subject of the verified token; None if there is none."""
    try:
        subject = event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"]
    except (KeyError, TypeError):
        return None
    return subject if isinstance(subject, str) else None


def path_values(path: str, prefix: str, count: int) -> tuple[str, ...] | None:
    """The `count` decoded values that follow a prefix in a path; None if there are fewer.

    An HTTP API hands over its path with every escape decoded but `%25`, other sources hand it over encoded:
    decoding once is right for both. As a decoded slash looks like any other, the last value takes the rest.

    Raises:
        ProblemError: 400 if an escape is not UTF-8.
    """
    values = path.removeprefix(prefix).split("/", count - 1)
    plain = path.isascii() and "%" not in path
    try:
        values = values if plain else [unquote(value, errors="strict") for value in values]
    except UnicodeDecodeError as error:
        raise ProblemError("malformed_path", "The path cannot be decoded as UTF-8.") from error
    if len(values) < count or not all(values):
        return None
    if not plain and not all(map(_is_text, values)):
        raise ProblemError("malformed_path", "The path holds half of a surrogate pair.")
    return tuple(values)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
