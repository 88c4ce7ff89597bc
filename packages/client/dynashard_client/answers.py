"""Results as a client returns them, and the errors of refusals."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

from dynashard import errors
from dynashard.errors import DynashardError, FieldError
from dynashard_serving.refusals import Refusal

I = TypeVar("I")  # noqa: E741 - the item


@dataclass(frozen=True, slots=True)
class Page(Generic[I]):
    """One page of a listing.

    Attributes:
        items: the items; a page may be short, or even empty, before the listing ends.
        cursor: continues the listing; None, and only None, says that it has ended.
    """

    items: list[I]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[I]):
    """The result of one part of a batch.

    Attributes:
        item: what was read; None for a write.
        error: why it was not done; None if it was.
    """

    item: I | None = None
    error: DynashardError | None = None

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.error is None


class RefusedError(DynashardError):
    """A refusal that the layer has no class for, such as `unauthenticated` or `method_not_allowed`.

    Each code has a class of its own, with the `code` and the `status` that the backend answered.
    """

    code: ClassVar[str] = "refused"
    status: ClassVar[int] = 400


def error_of(refusal: Refusal, request_id: str | None = None) -> DynashardError:
    """Return the error of a refusal: of the layer's class with its code, else a `RefusedError`."""
    build = _BUILDERS.get(refusal.code)
    known = _CLASSES.get(refusal.code)
    if build is not None:
        error = build(refusal)
    elif known is not None:
        error = _simple(known, refusal)
    else:
        error = _other_class(refusal)(refusal.message)
    if request_id:
        error.add_note(f"request id: {request_id}")
    return error


def refusal_in(answer: Mapping[str, Any], *, status: int = 500, retry_after: int | None = None) -> Refusal:
    """Return the refusal in an answer of direct invocation or in a problem document."""
    errors = answer.get("errors", ())
    return Refusal(
        code=str(answer.get("code", "internal_error")),
        status=status,
        message=str(answer.get("message", answer.get("detail", ""))),
        errors=tuple(
            FieldError(*(str(each.get(name, "")) for name in ("field", "message", "code"))) for each in errors
        ),
        details=answer.get("details") or {},
        retry_after=answer.get("retry_after", retry_after),
    )


def outcome_of(answer: "Outcome[Any] | Mapping[str, Any]") -> Outcome[Any]:
    """The outcome of a part of a batch, as a transport answers it."""
    if isinstance(answer, Outcome):
        return answer
    if answer.get("ok") is True:
        return Outcome(answer.get("result"))
    return Outcome(error=error_of(refusal_in(answer.get("error") or {})))


def _other_class(refusal: Refusal) -> type[RefusedError]:
    retryable = refusal.retry_after is not None
    members = {"code": refusal.code, "status": refusal.status, "retryable": retryable}
    return type("RefusedError", (RefusedError,), {**members, "__doc__": RefusedError.__doc__})


def _simple(known: type[DynashardError], refusal: Refusal) -> DynashardError:
    if issubclass(known, errors.InputError):
        return known(refusal.message, field=_field(refusal))
    if issubclass(known, errors.ThrottledError):
        reasons = [errors.ThrottleReason(str(reason), "") for reason in refusal.details.get("reasons", ())]
        seconds = refusal.retry_after or 1
        return known(refusal.message, operation="", aws_code="", reasons=reasons, retry_after=seconds)
    return known(refusal.message)


def _field(refusal: Refusal) -> str | None:
    return next((error.field for error in refusal.errors if error.field), None) or refusal.details.get("field")


def _classes(root: type[DynashardError]) -> Iterator[type[DynashardError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield from _classes(child)


_CLASSES: Final = {each.code: each for each in _classes(DynashardError)}
_BUILDERS: Final[Mapping[str, Callable[[Refusal], DynashardError]]] = {
    "validation_failed": lambda refusal: errors.ValidationFailedError(*refusal.errors),
    "item_too_large": lambda refusal: errors.ItemTooLargeError(
        refusal.message, size=refusal.details.get("size"), limit=int(refusal.details.get("limit", 0))
    ),
    "request_too_large": lambda refusal: errors.RequestTooLargeError(
        refusal.message, limit=int(refusal.details.get("limit", 0))
    ),
    "unprocessed": lambda refusal: errors.UnprocessedError(
        refusal.message, operation="", keys=list(refusal.details.get("keys", ()))
    ),
    "condition_failed": lambda refusal: errors.ConditionFailedError(refusal.message, operation="", item=None),
    "transaction_canceled": lambda refusal: errors.TransactionCanceledError(refusal.message, operation="", reasons=()),
    "transaction_refused": lambda refusal: errors.TransactionRefusedError(
        refusal.message, step=int(refusal.details.get("step", 0)), reason=str(refusal.details.get("reason", ""))
    ),
    "outcome_unknown": lambda refusal: errors.OutcomeUnknownError(
        refusal.message,
        key=refusal.details.get("key"),
        revision=refusal.details.get("revision"),
        retryable=refusal.retry_after is not None,
        keys=list(refusal.details.get("keys", ())),
        unprocessed=list(refusal.details.get("unprocessed", ())),
    ),
    "reshard_refused": lambda refusal: errors.ReshardRefusedError(
        refusal.message, reason=str(refusal.details.get("reason", ""))
    ),
    "wrong_declaration": lambda refusal: errors.DeclarationError("", refusal.message),
}
"""Errors whose classes need more than a sentence."""
