"""What a caller is told of an error, whatever way the request came: nothing about the inside of this backend."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any, Final

from dynashard.errors import DynashardError, FieldError, InputError, ValidationFailedError

INTERNAL_ERROR: Final = "internal_error"
"""The code of whatever nobody expected."""
HIDDEN: Final = "The request failed on our side. Quote the request id when you report it."
SERVER_ERROR: Final = 500


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as its caller may see it.

    Attributes:
        code: stable; docs/errors.md lists all.
        status: what HTTP answers for it.
        message: what is wrong and what to do.
        errors: the fields at fault.
        details: what a program can use besides.
        retry_after: when the same request can succeed, in seconds; None if it cannot.
    """

    code: str
    status: int
    message: str
    errors: tuple[FieldError, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    retry_after: int | None = None

    @property
    def ours(self) -> bool:
        """Whether the fault is on our side, so that the log has to say more than the answer."""
        return self.status >= SERVER_ERROR and self.retry_after is None

    def document(self) -> dict[str, Any]:
        """The error as direct invocation answers it."""
        document: dict[str, Any] = {"code": self.code, "message": self.message, "details": dict(self.details)}
        if self.errors:
            document["errors"] = [asdict(error) for error in self.errors]
        if self.retry_after is not None:
            document["retry_after"] = self.retry_after
        return document


def refusal_of(error: Exception) -> Refusal:
    """What a caller is told of an error; of one that nobody expected, that there was one."""
    match error:
        case ValidationFailedError():
            return Refusal(error.code, error.status, str(error), error.errors)
        case InputError() if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            at_fault = (FieldError(error.field or "", str(error), error.code),)
            return Refusal(error.code, error.status, str(error), at_fault)
        case DynashardError() if error.retryable:
            seconds = int(getattr(error, "retry_after", 1))
            return Refusal(error.code, error.status, str(error), details=error.details, retry_after=seconds)
        case DynashardError() if error.status < SERVER_ERROR:
            return Refusal(error.code, error.status, str(error), details=error.details)
        case DynashardError():
            return Refusal(error.code, error.status, HIDDEN)
        case _:
            return Refusal(INTERNAL_ERROR, SERVER_ERROR, HIDDEN)
