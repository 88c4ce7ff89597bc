"""Every error that REST answers, as `application/problem+json` (RFC 9457).

Errors of the layer have codes and statuses of their own; the codes of HTTP itself are listed here. `docs/errors.md`
has a line for each.
"""

import json
from collections.abc import Mapping
from typing import Final

from dynashard_serving.api.response import Response
from dynashard_serving.operations.permits import InsufficientScopeError
from dynashard_serving.refusals import Refusal, refusal_of, shortened

CONTENT_TYPE: Final = "application/problem+json"

HTTP_CODES: Final[Mapping[str, int]] = {
    "malformed_body": 400,
    "malformed_event": 400,
    "malformed_header": 400,
    "malformed_path": 400,
    "malformed_query": 400,
    "unauthenticated": 401,
    "tenant_missing": 403,
    "no_such_route": 404,
    "method_not_allowed": 405,
    "patch_conflict": 409,
    "precondition_failed": 412,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "quota_exceeded": 429,
    "internal_error": 500,
}
"""Codes of HTTP's own errors, with their status."""


_HEADERS: Final = "_headers_of_its_answer"


class ProblemError(Exception):
    """A request that HTTP's own rules refuse.

    Args:
        code: one of `HTTP_CODES`.
        detail: what is wrong and what to do.
        headers: headers the answer must carry, such as `Allow`.
    """

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.status = HTTP_CODES[code]
        self.headers = dict(headers or {})


def problem_of(error: Exception) -> tuple[Refusal, Mapping[str, str]]:
    """Return the refusal and the headers that an error is answered with; an unexpected error has no details."""
    if isinstance(error, ProblemError):
        return Refusal(error.code, error.status, shortened(str(error))), error.headers
    refusal = refusal_of(error)
    added = vars(error).get(_HEADERS, {})
    if isinstance(error, InsufficientScopeError):
        return refusal, {**added, "WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{error.scopes[0]}"'}
    return refusal, added if refusal.retry_after is None else {**added, "Retry-After": str(refusal.retry_after)}


def add_headers(error: Exception, headers: Mapping[str, str]) -> None:
    """Let the answer to an error have these headers too."""
    if isinstance(error, ProblemError):
        error.headers.update(headers)
    else:
        vars(error)[_HEADERS] = headers


def problem_text(refusal: Refusal, request_id: str) -> str:
    """Return the problem document of a refusal, all ASCII: it may quote half a surrogate pair that the caller sent."""
    return json.dumps(refusal.problem(request_id))


def problem_response(refusal: Refusal, headers: Mapping[str, str], request_id: str) -> Response[str]:
    """Return the response with a problem document. No cache may keep it."""
    every = {**headers, "Cache-Control": "no-store"}
    return Response(refusal.status, content_type=CONTENT_TYPE, body=problem_text(refusal, request_id), headers=every)
