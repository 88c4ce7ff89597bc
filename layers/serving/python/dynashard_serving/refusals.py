"""How errors are answered over REST and direct invocation, without details of how this backend works inside."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard.errors import DynashardError, FieldError, InputError, OutcomeUnknownError, ValidationFailedError

INTERNAL_ERROR: Final = "internal_error"
"""The code of an unexpected error."""
HIDDEN: Final = "The request failed on our side. Quote the request id when you report it."
SERVER_ERROR: Final = 500
MAX_MESSAGE: Final = 1000
"""Characters of a message. Longer messages quote what the caller sent, and are cut."""
MAX_ERRORS_BYTES: Final = 32 * 1024
"""The fields at fault in one answer, as ASCII JSON."""
_MAX_FIELD: Final = 200
_MAX_CAUSES: Final = 5


class Refusal(Struct, frozen=True):
    """An error as callers see it.

    Attributes:
        code: stable; docs/errors.md lists all.
        status: the HTTP status.
        message: what is wrong and what to do.
        errors: the fields at fault, as many as fit into an answer of less than 50 KB.
        omitted: how many fields were left out.
        details: data for programs.
        retry_after: after how many seconds the same request can succeed; None if it cannot.
    """

    code: str
    status: int
    message: str
    errors: tuple[FieldError, ...] = ()
    details: Mapping[str, Any] = MappingProxyType({})
    retry_after: int | None = None
    omitted: int = 0

    @property
    def ours(self) -> bool:
        """Whether the fault is on our side, so that the log must say more than the answer."""
        return self.status >= SERVER_ERROR and self.retry_after is None and self.code != OutcomeUnknownError.code

    def document(self) -> dict[str, Any]:
        """The error as direct invocation answers it."""
        document: dict[str, Any] = {"code": self.code, "message": self.message, "details": dict(self.details)}
        if self.errors:
            document["errors"] = [error._asdict() for error in self.errors]
        if self.omitted:
            document["errors_omitted"] = self.omitted
        if self.retry_after is not None:
            document["retry_after"] = self.retry_after
        return document

    def problem(self, request_id: str | None = None) -> dict[str, Any]:
        """The error as a problem document (RFC 9457), as REST answers it to the request with this id."""
        document: dict[str, Any] = {
            "type": f"urn:dynashard:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.message,
            "code": self.code,
        }
        if request_id is not None:
            document["request_id"] = request_id
        if self.errors:
            document["errors"] = [error._asdict() for error in self.errors]
        if self.omitted:
            document["errors_omitted"] = self.omitted
        if self.details:
            document["details"] = dict(self.details)
        return document


def expected(error: Exception) -> bool:
    """Return whether an error is expected, so that its message suffices in the log without a traceback.

    Every error of `dynashard.errors` is expected. Any other error is a fault in the code.
    """
    return isinstance(error, DynashardError)


def one_line(error: Exception) -> str:
    """Return an error in one line: its class, its message without line breaks, and the same of its causes.

    `ThrottledError: DynamoDB throttled PutItem`, `QueueUnavailableError: ..., because of RuntimeError: ...`.
    """
    lines: dict[str, None] = {}
    cause: BaseException | None = error
    # Bounded, because causes can form a circle.
    for _ in range(_MAX_CAUSES):
        if cause is None:
            break
        lines[" ".join(f"{type(cause).__name__}: {cause}".split())] = None
        cause = cause.__cause__
    return ", because of ".join(lines)


def refusal_of(error: Exception) -> Refusal:
    """Return an error as callers see it. An unexpected error is answered without details.

    Long messages and names are cut, so that the answer stays below 50 KB.
    """
    refusal = _refusal(error)
    errors = _fitting(refusal.errors)
    omitted = refusal.omitted + len(refusal.errors) - len(errors)
    return replace(refusal, message=shortened(refusal.message), errors=errors, omitted=omitted)


def shortened(text: str, most: int = MAX_MESSAGE) -> str:
    """Return the text, cut after `most` characters. Half of a surrogate pair, which no answer can hold, is escaped."""
    cut = text if len(text) <= most else f"{text[:most]}..."
    return cut.encode(errors="backslashreplace").decode()


def _fitting(errors: Sequence[FieldError]) -> tuple[FieldError, ...]:
    room, fitting = MAX_ERRORS_BYTES, []
    for error in errors:
        kept = FieldError(shortened(error.field, _MAX_FIELD), shortened(error.message), error.code)
        room -= len(json.dumps(kept._asdict()))
        if room < 0:
            break
        fitting.append(kept)
    return tuple(fitting)


def _refusal(error: Exception) -> Refusal:
    match error:
        case ValidationFailedError():
            return Refusal(error.code, error.status, str(error), error.errors, omitted=error.omitted)
        case InputError() if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            at_fault = (FieldError(error.field or "", str(error), error.code),)
            # The field is in `errors`.
            details = {name: value for name, value in error.details.items() if name != "field"}
            return Refusal(error.code, error.status, str(error), at_fault, details)
        case DynashardError() if error.retryable:
            seconds = int(getattr(error, "retry_after", 1))
            return Refusal(error.code, error.status, str(error), details=error.details, retry_after=seconds)
        case DynashardError() if error.status < SERVER_ERROR or isinstance(error, OutcomeUnknownError):
            return Refusal(error.code, error.status, str(error), details=error.details)
        case DynashardError():
            return Refusal(error.code, error.status, HIDDEN)
        case _:
            return Refusal(INTERNAL_ERROR, SERVER_ERROR, HIDDEN)
