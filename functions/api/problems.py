"""Every error that REST answers, as `application/problem+json` (RFC 9457).

The layer's errors bring their code and status along; the codes of HTTP itself are listed here. `docs/errors.md`
has a line for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.refusals import refusal_of, shortened

__all__ = [
    "CONTENT_TYPE",
    "HTTP_CODES",
    "TYPE_PREFIX",
    "FieldError",
    "Problem",
    "ProblemError",
    "invalid_fields",
    "problem_of",
]

CONTENT_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:dynashard:problem:"

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
    "precondition_failed": 412,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "internal_error": 500,
}
"""Codes of HTTP's own errors, with their status."""


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
        self.detail = detail
        self.headers = dict(headers or {})


def invalid_fields(*errors: FieldError) -> ValidationFailedError:
    """The 422 for these fields."""
    return ValidationFailedError(*errors)


@dataclass(frozen=True, slots=True)
class Problem:
    """An error, ready to be answered."""

    status: int
    code: str
    detail: str
    errors: tuple[FieldError, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    omitted: int = 0

    def document(self, request_id: str) -> dict[str, Any]:
        """The problem document, for the request with this id."""
        document: dict[str, Any] = {
            "type": TYPE_PREFIX + self.code,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
        }
        if self.errors:
            document["errors"] = [
                {"field": error.field, "message": error.message, "code": error.code} for error in self.errors
            ]
        if self.omitted:
            document["errors_omitted"] = self.omitted
        if self.details:
            document["details"] = dict(self.details)
        return document


def problem_of(error: Exception) -> Problem:
    """The problem that an exception becomes; whatever is not an expected error becomes a 500 that says nothing."""
    if isinstance(error, ProblemError):
        return Problem(error.status, error.code, shortened(error.detail), headers=error.headers)
    refusal = refusal_of(error)
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    found = (refusal.status, refusal.code, refusal.message, refusal.errors, refusal.details)
    return Problem(*found, headers=headers, omitted=refusal.omitted)
