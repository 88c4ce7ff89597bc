"""From DynamoDB's error answers to the layer's typed errors.

DynamoDB lists the reasons of a throttle as `ThrottlingReasons` in two exceptions and as `throttlingReasons` in a third.
A cancelled transaction has one code for each action, and names no throttled resource.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dynashard.errors import (
    CancellationReason,
    ConditionFailedError,
    DynashardError,
    EngineError,
    EngineUnavailableError,
    InvalidValueError,
    ItemTooLargeError,
    KeyRangeThrottledError,
    OutcomeUnknownError,
    TableThrottledError,
    ThrottledError,
    ThrottleKind,
    ThrottleReason,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.transport.interface import WRITING

MAX_STORED_ITEM_BYTES: Final = 400 * 1024

DAMAGED: Final = "DamagedAnswer"
"""The layer's own code for an answer that fails its checksum or is not a JSON object."""

INVALID_REQUEST: Final = "ValidationException"
"""DynamoDB's code for a request that it cannot carry out as it stands."""

_THROTTLES: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "Throttling",
        "LimitExceededException",
    }
)
_ACCOUNT: Final = CancellationReason.ACCOUNT_LIMIT
"""The only code that names the limit itself: the account's."""
_INDEX_BLAMED: Final = "secondary index"
"""In messages about the limits of an index. One about "your table or index" names neither."""
_ADVICE: Final = {
    ThrottledError: "Try again later.",
    TableThrottledError: "The account's quota is used up: ask for a higher one.",
}
"""What to do if DynamoDB gives no reasons."""
_CONFLICTS: Final = frozenset(
    {"TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException"}
)
_UNAVAILABLE: Final = frozenset(
    {
        DAMAGED,
        "InternalServerError",
        "InternalFailure",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "RequestTimeout",
        "RequestTimeoutException",
    }
)
_CREDENTIALS: Final = "Check the credentials, the region and this machine's clock."
_TO_DO: Final = {
    "AccessDeniedException": "Grant this role the action on the table and on its indexes.",
    "ExpiredTokenException": _CREDENTIALS,
    "IncompleteSignatureException": _CREDENTIALS,
    "InvalidSignatureException": _CREDENTIALS,
    "ItemCollectionSizeLimitExceededException": "A local secondary index limits a partition key to 10 GB: raise the "
    "shard count.",
    "MissingAuthenticationTokenException": _CREDENTIALS,
    "ResourceNotFoundException": "Create the table, or check its name, the region and the endpoint.",
    "UnrecognizedClientException": _CREDENTIALS,
}
"""What to do about a refusal, by its code."""


class Refusal(Struct, frozen=True):
    """The parts of an error answer.

    `code` is DynamoDB's name of the error without its namespace, `body` the whole answer, `attempts` how often the
    request was sent, and `retry_after` the seconds until it is accepted again.
    """

    operation: str
    status: int
    code: str
    message: str
    body: Mapping[str, Any]
    attempts: int = 1
    retry_after: int = 1

    @property
    def throttled(self) -> bool:
        """Whether it is a throttle; the reasons of a cancelled transaction are not considered."""
        return self.code in _THROTTLES or self.status == 429  # noqa: PLR2004 - HTTP's own number

    @property
    def sent(self) -> str:
        """How often the request was sent, in words."""
        return "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"

    def throttle(self, kind: type[ThrottledError], why: str, advice: str | None = None, **more: Any) -> ThrottledError:
        """Return the error for a throttle."""
        return kind(
            f"{self.operation} was throttled ({self.sent}): {why}. {advice or _ADVICE[kind]}",
            operation=self.operation,
            aws_code=self.code,
            retry_after=self.retry_after,
            **more,
        )


def classify(refusal: Refusal) -> DynashardError:
    """Return the error for an answer: an `EngineError`, `ItemTooLargeError` or `InvalidValueError`."""
    code = refusal.code
    if code in _BY_CODE:
        return _BY_CODE[code](refusal)
    if code in _TO_DO:
        return _refused(refusal)
    if refusal.throttled:
        return _throttled(refusal)
    if code in _CONFLICTS:
        return _conflict(refusal)
    if code in _UNAVAILABLE or refusal.status >= 500:  # noqa: PLR2004 - HTTP's own number
        return unanswered(refusal.operation, code, f"DynamoDB gave no usable answer ({code}, {refusal.sent})")
    return _refused(refusal)


def unanswered(operation: str, code: str, what: str) -> EngineUnavailableError:
    """Return the error of an attempt that was sent and got no usable answer: for a write, `OutcomeUnknownError`.

    `code` names what came instead of an answer, and `what` is the same as a sentence without its full stop.
    """
    if operation in WRITING:
        return OutcomeUnknownError(
            f"{operation}: {what}. It may have been applied, or may still be.", operation=operation, aws_code=code
        )
    return EngineUnavailableError(f"{operation}: {what}. Try again.", operation=operation, aws_code=code)


def unreached(operation: str, code: str, why: str) -> EngineUnavailableError:
    """Return the error of an attempt that was certainly not sent; `code` names the kind of failure."""
    return EngineUnavailableError(
        f"DynamoDB cannot be reached ({why}); {operation} was not sent. Try again.", operation=operation, aws_code=code
    )


def refused_sum(operation: str, message: str) -> InvalidValueError | None:
    """Return the error if DynamoDB's message says that it cannot store a sum; DynamoDB does not name the field."""
    if not any(said in message for said in ("significant digits in a Number", "Number overflow", "Number underflow")):
        return None
    return InvalidValueError(
        f"{operation} would store a sum of more than 38 significant digits, or one that is out of range. Add a number "
        "with which the sum can be stored."
    )


def throttle_names(refusal: Refusal) -> tuple[str, ...]:
    """Return the names under which a meter counts an attempt; none if it was not throttled."""
    if refusal.code == "TransactionCanceledException":
        codes = {reason.code for reason in _cancellation_reasons(refusal.body)}
        return tuple(sorted(codes & CancellationReason.THROTTLES))
    if not refusal.throttled:
        return ()
    return tuple(sorted({r.reason for r in _throttle_reasons(refusal.body)})) or (refusal.code,)


def _throttle_reasons(body: Mapping[str, Any]) -> tuple[ThrottleReason, ...]:
    found = _members(body, "ThrottlingReasons") or _members(body, "throttlingReasons")
    pairs = ((each.get("reason") or each.get("Reason"), each.get("resource") or each.get("Resource")) for each in found)
    return tuple(ThrottleReason(str(reason), str(resource or "")) for reason, resource in pairs if reason)


def _cancellation_reasons(body: Mapping[str, Any]) -> tuple[CancellationReason, ...]:
    return tuple(
        CancellationReason(
            str(entry.get("Code") or CancellationReason.NONE), entry.get("Item"), str(entry.get("Message") or "")
        )
        for entry in _members(body, "CancellationReasons")
    )


def _members(body: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the members of a list in an answer. What another server sent in place of one says nothing."""
    found = body.get(name)
    return [each if isinstance(each, Mapping) else {} for each in found] if isinstance(found, list) else []


def _throttled(refusal: Refusal) -> ThrottledError:
    if reasons := _throttle_reasons(refusal.body):
        return refusal.throttle(*_judged(reasons), reasons=reasons)
    kind = TableThrottledError if refusal.code == _ACCOUNT else ThrottledError
    why = (refusal.message or refusal.code).rstrip(".")
    return refusal.throttle(kind, why, index_blamed=_INDEX_BLAMED in refusal.message)


@lru_cache(maxsize=64)
def _judged(reasons: tuple[ThrottleReason, ...]) -> tuple[type[ThrottledError], str, str]:
    """Return the error for a throttle, its reasons in words, and what to do. A key range decides: more shards help."""
    kinds = {reason.kind for reason in reasons} - {ThrottleKind.UNKNOWN}
    advice = " ".join(sorted({reason.remedy for reason in reasons if reason.kind in kinds}))
    known = KeyRangeThrottledError if ThrottleKind.KEY_RANGE in kinds else TableThrottledError
    why = ", ".join(sorted({reason.reason for reason in reasons})).rstrip(".")
    return known if kinds else ThrottledError, why, advice


def _conflict(refusal: Refusal) -> TransactionConflictError:
    return TransactionConflictError(
        f"{refusal.operation} met another write on the same item ({refusal.sent}). Try again.",
        operation=refusal.operation,
        aws_code=refusal.code,
    )


def _condition_failed(refusal: Refusal) -> ConditionFailedError:
    return ConditionFailedError(
        f"The condition of {refusal.operation} does not hold. Read the item and decide again.",
        operation=refusal.operation,
        item=refusal.body.get("Item"),
    )


def _cancelled(refusal: Refusal) -> EngineError:
    """Return the error of a cancelled transaction: a throttle, a conflict, or refusals for the caller to handle."""
    reasons = _cancellation_reasons(refusal.body)
    codes = {reason.code for reason in reasons if reason.refused}
    if codes and codes <= CancellationReason.THROTTLES:
        kind = TableThrottledError if codes == {_ACCOUNT} else ThrottledError
        blamed = any(_INDEX_BLAMED in reason.message for reason in reasons)
        actions = [at for at, reason in enumerate(reasons) if reason.code in CancellationReason.THROTTLES]
        return refusal.throttle(kind, ", ".join(sorted(codes)), index_blamed=blamed, actions=actions)
    if CancellationReason.CONFLICT in codes and CancellationReason.CONDITION not in codes:
        return _conflict(refusal)
    refused = ", ".join(f"action {at}: {reason.code}" for at, reason in enumerate(reasons) if reason.refused)
    return TransactionCanceledError(
        f"{refusal.operation} was cancelled as a whole: {refused or refusal.message}.",
        operation=refusal.operation,
        reasons=reasons,
    )


def _invalid(refusal: Refusal) -> DynashardError:
    """An item or sum that is too large is the caller's input; any other invalid request is a defect of the layer."""
    if "maximum allowed size" in refusal.message and refusal.message.startswith("Item size"):
        return ItemTooLargeError(
            f"{refusal.operation} would make the item larger than {MAX_STORED_ITEM_BYTES} bytes. Store less in it.",
            size=None,
            limit=MAX_STORED_ITEM_BYTES,
        )
    return refused_sum(refusal.operation, refusal.message) or _refused(refusal)


def _refused(refusal: Refusal) -> EngineError:
    what = f"{refusal.operation} was refused by DynamoDB: {refusal.code}: {refusal.message or 'no message'}"
    advice = _TO_DO.get(refusal.code, "")
    return EngineError(f"{what.rstrip('.')}. {advice}".strip(), operation=refusal.operation, aws_code=refusal.code)


_BY_CODE: Final[Mapping[str, Callable[[Refusal], DynashardError]]] = {
    "ConditionalCheckFailedException": _condition_failed,
    "TransactionCanceledException": _cancelled,
    INVALID_REQUEST: _invalid,
}
