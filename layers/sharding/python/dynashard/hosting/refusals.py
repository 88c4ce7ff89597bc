"""What a caller is told of an error, whatever way the request came: nothing about the inside of this backend."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from dynashard.errors import DynashardError, FieldError, InputError, OutcomeUnknownError, ValidationFailedError

INTERNAL_ERROR: Final = "internal_error"
"""The code of whatever nobody expected."""
HIDDEN: Final = "The request failed on our side. Quote the request id when you report it."
SERVER_ERROR: Final = 500
MAX_MESSAGE: Final = 1000
"""Characters of a sentence; longer ones quote what the caller sent."""
MAX_ERRORS_BYTES: Final = 32 * 1024
"""All fields at fault, as JSON of ASCII."""
_MAX_FIELD: Final = 200
_MAX_CAUSES: Final = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as its caller may see it.

    Attributes:
        code: stable; docs/errors.md lists all.
        status: what HTTP answers for it.
        message: what is wrong and what to do.
        errors: the fields at fault, as many as an answer of less than 50 KB has room for.
        omitted: how many more there are.
        details: what a program can use besides.
        retry_after: when the same request can succeed, in seconds; None if it cannot.
    """

    code: str
    status: int
    message: str
    errors: tuple[FieldError, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    retry_after: int | None = None
    omitted: int = 0

    @property
    def ours(self) -> bool:
        """Whether the fault is on our side, so that the log has to say more than the answer."""
        return self.status >= SERVER_ERROR and self.retry_after is None and self.code != OutcomeUnknownError.code

    def document(self) -> dict[str, Any]:
        """The error as direct invocation answers it."""
        document: dict[str, Any] = {"code": self.code, "message": self.message, "details": dict(self.details)}
        if self.errors:
            document["errors"] = [asdict(error) for error in self.errors]
        if self.omitted:
            document["errors_omitted"] = self.omitted
        if self.retry_after is not None:
            document["retry_after"] = self.retry_after
        return document


def expected(error: Exception) -> bool:
    """Whether an error explains itself: one line of the log is enough, and no traceback is needed.

    That is every error of the tree, whoever's fault it is. Anything else is a fault in the code.
    """
    return isinstance(error, DynashardError)


def one_line(error: Exception) -> str:
    """An error in one line: its class and its message without line breaks, and those of what caused it.

    `ThrottledError: DynamoDB throttled PutItem`, `QueueUnavailableError: ..., because of RuntimeError: ...`.
    """
    told: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(told) < _MAX_CAUSES:
        line = " ".join(f"{type(cause).__name__}: {cause}".split())
        if line not in told:
            told.append(line)
        cause = cause.__cause__
    return ", because of ".join(told)


def refusal_of(error: Exception) -> Refusal:
    """What a caller is told of an error; of one that nobody expected, that there was one.

    What it quotes of the request is shortened: an error is answered in less than 50 KB.
    """
    refusal = _refusal(error)
    errors = _fitting(refusal.errors)
    omitted = refusal.omitted + len(refusal.errors) - len(errors)
    return replace(refusal, message=shortened(refusal.message), errors=errors, omitted=omitted)


def shortened(text: str, most: int = MAX_MESSAGE) -> str:
    """The text, cut where it is longer than an answer has room for."""
    return text if len(text) <= most else f"{text[:most]}..."


def _fitting(errors: Sequence[FieldError]) -> tuple[FieldError, ...]:
    room, fitting = MAX_ERRORS_BYTES, []
    for error in errors:
        kept = FieldError(shortened(error.field, _MAX_FIELD), shortened(error.message), error.code)
        room -= len(json.dumps(asdict(kept)))
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
            return Refusal(error.code, error.status, str(error), at_fault)
        case DynashardError() if error.retryable:
            seconds = int(getattr(error, "retry_after", 1))
            return Refusal(error.code, error.status, str(error), details=error.details, retry_after=seconds)
        case DynashardError() if error.status < SERVER_ERROR or isinstance(error, OutcomeUnknownError):
            return Refusal(error.code, error.status, str(error), details=error.details)
        case DynashardError():
            return Refusal(error.code, error.status, HIDDEN)
        case _:
            return Refusal(INTERNAL_ERROR, SERVER_ERROR, HIDDEN)
