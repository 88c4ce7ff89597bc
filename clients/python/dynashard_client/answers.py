"""What a client is answered, and the errors that refusals become."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

from dynashard import errors
from dynashard.errors import DynashardError, FieldError

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
class Written(Generic[I]):
    """A stored item, and whether its key had no live item before."""

    item: I
    created: bool


@dataclass(frozen=True, slots=True)
class Outcome(Generic[I]):
    """What came of one part of a batch.

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

    `code` and `status` are what the backend said, by a class of its own for each code.
    """

    code: ClassVar[str] = "refused"
    status: ClassVar[int] = 400


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a backend has refused with.

    Attributes:
        code: the error's code.
        message: its sentence.
        status: its HTTP status, None if the transport does not report it.
        details, errors: as docs/errors.md tells.
        retry_after: when to come back, in seconds; None if that does not help.
        request_id: by which the backend's log knows it.
    """

    code: str
    message: str
    status: int | None = None
    details: Mapping[str, Any] | None = None
    errors: Sequence[Mapping[str, Any]] = ()
    retry_after: int | None = None
    request_id: str | None = None


def error_of(refusal: Refusal) -> DynashardError:
    """The error that a refusal stands for: of the layer's class with its code, else a `RefusedError`."""
    build = _BUILDERS.get(refusal.code)
    known = _CLASSES.get(refusal.code)
    if build is not None:
        error = build(refusal)
    elif known is not None:
        error = _simple(known, refusal)
    else:
        error = _other_class(refusal)(refusal.message)
    if refusal.request_id:
        error.add_note(f"request id: {refusal.request_id}")
    return error


def refusal_in(told: Mapping[str, Any]) -> Refusal:
    """The refusal in an answer of direct invocation."""
    return Refusal(
        code=str(told.get("code", "internal_error")),
        message=str(told.get("message", "")),
        details=told.get("details"),
        errors=told.get("errors", ()),
        retry_after=told.get("retry_after"),
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
    members = {"code": refusal.code, "status": refusal.status or 500, "retryable": retryable}
    return type("RefusedError", (RefusedError,), {**members, "__doc__": RefusedError.__doc__})


def _simple(known: type[DynashardError], refusal: Refusal) -> DynashardError:
    if issubclass(known, errors.InputError):
        return known(refusal.message, field=_field(refusal))
    if issubclass(known, errors.ThrottledError):
        reasons = [errors.ThrottleReason(str(reason), "") for reason in _details(refusal).get("reasons", ())]
        seconds = refusal.retry_after or 1
        return known(refusal.message, operation="", aws_code="", reasons=reasons, retry_after=seconds)
    return known(refusal.message)


def _field(refusal: Refusal) -> str | None:
    named = [str(error["field"]) for error in refusal.errors if error.get("field")]
    return named[0] if named else _details(refusal).get("field")


def _details(refusal: Refusal) -> Mapping[str, Any]:
    return refusal.details or {}


def _classes(root: type[DynashardError]) -> Iterator[type[DynashardError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield from _classes(child)


_CLASSES: Final = {each.code: each for each in _classes(DynashardError)}
_BUILDERS: Final[Mapping[str, Callable[[Refusal], DynashardError]]] = {
    "validation_failed": lambda refusal: errors.ValidationFailedError(
        *(
            FieldError(str(e.get("field", "")), str(e.get("message", "")), str(e.get("code", "")))
            for e in refusal.errors
        )
    ),
    "item_too_large": lambda refusal: errors.ItemTooLargeError(
        refusal.message, size=_details(refusal).get("size"), limit=int(_details(refusal).get("limit", 0))
    ),
    "request_too_large": lambda refusal: errors.RequestTooLargeError(
        refusal.message, limit=int(_details(refusal).get("limit", 0))
    ),
    "unprocessed": lambda refusal: errors.UnprocessedError(
        refusal.message, operation="", keys=list(_details(refusal).get("keys", ()))
    ),
    "condition_failed": lambda refusal: errors.ConditionFailedError(refusal.message, operation="", item=None),
    "transaction_canceled": lambda refusal: errors.TransactionCanceledError(refusal.message, operation="", reasons=()),
    "transaction_refused": lambda refusal: errors.TransactionRefusedError(
        refusal.message, step=int(_details(refusal).get("step", 0)), reason=str(_details(refusal).get("reason", ""))
    ),
    "outcome_unknown": lambda refusal: errors.OutcomeUnknownError(
        refusal.message,
        key=_details(refusal).get("key"),
        revision=_details(refusal).get("revision"),
        retryable=refusal.retry_after is not None,
        keys=list(_details(refusal).get("keys", ())),
        unprocessed=list(_details(refusal).get("unprocessed", ())),
    ),
    "reshard_refused": lambda refusal: errors.ReshardRefusedError(
        refusal.message, reason=str(_details(refusal).get("reason", ""))
    ),
    "wrong_declaration": lambda refusal: errors.DeclarationError("", refusal.message),
}
"""Errors whose classes want more than a sentence."""
