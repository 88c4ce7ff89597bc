"""DynamoDB refused a request, or did not answer it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dynashard.errors.root import DynashardError


class EngineError(DynashardError):
    """DynamoDB refused a request. `aws_code` is its own name for the reason."""

    code = "engine_error"
    status = 502

    def __init__(self, message: str, *, operation: str = "", aws_code: str = "") -> None:
        super().__init__(message)
        self.operation = operation
        self.aws_code = aws_code


class ConditionFailedError(EngineError):
    """A condition of a single write does not hold.

    `item` is the stored item in DynamoDB JSON, None if none is stored. `ambiguous` is True if an earlier attempt
    of the same request may have been executed, or may still be: then the condition may have failed because of it.
    """

    code = "condition_failed"
    status = 409

    def __init__(
        self, message: str, *, operation: str, item: Mapping[str, Any] | None, ambiguous: bool = False
    ) -> None:
        super().__init__(message, operation=operation, aws_code="ConditionalCheckFailedException")
        self.item = item
        self.ambiguous = ambiguous


@dataclass(frozen=True, slots=True)
class CancellationReason:
    """Why an action of a transaction could not be done: DynamoDB's code and words, and the stored item if asked for."""

    NONE: ClassVar[str] = "None"
    CONDITION: ClassVar[str] = "ConditionalCheckFailed"
    CONFLICT: ClassVar[str] = "TransactionConflict"
    INVALID: ClassVar[str] = "ValidationError"
    ACCOUNT_LIMIT: ClassVar[str] = "RequestLimitExceeded"
    THROTTLES: ClassVar[frozenset[str]] = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", ACCOUNT_LIMIT})

    code: str
    item: Mapping[str, Any] | None = None
    message: str = ""

    @property
    def refused(self) -> bool:
        """Whether the action had a part in the cancellation."""
        return self.code != self.NONE

    @property
    def condition_failed(self) -> bool:
        """Whether its condition does not hold."""
        return self.code == self.CONDITION

    @property
    def met(self) -> Mapping[str, Any] | None:
        """The stored item that its condition does not hold for; None if there is none, or if it was not the reason."""
        return self.item if self.condition_failed else None

    @property
    def passing(self) -> bool:
        """Whether the same action may be possible later: nothing is wrong with the request itself."""
        return self.code in {self.NONE, self.CONDITION, self.CONFLICT} or self.code in self.THROTTLES


class TransactionCanceledError(EngineError):
    """A transaction was cancelled as a whole; `reasons` has one entry an action, in order.

    `ambiguous` is True if an earlier attempt of the same request may have been executed, or may still be.
    """

    code = "transaction_canceled"
    status = 409

    def __init__(
        self, message: str, *, operation: str, reasons: Sequence[CancellationReason], ambiguous: bool = False
    ) -> None:
        super().__init__(message, operation=operation, aws_code="TransactionCanceledException")
        self.reasons = tuple(reasons)
        self.ambiguous = ambiguous

    @property
    def overtaken(self) -> bool:
        """Whether somebody else was first, and nothing more: conditions that do not hold, and conflicts."""
        lost = {CancellationReason.NONE, CancellationReason.CONDITION, CancellationReason.CONFLICT}
        return all(reason.code in lost for reason in self.reasons)


class TransactionConflictError(EngineError):
    """Another transaction holds the item."""

    code = "transaction_conflict"
    status = 409
    retryable = True


class UnprocessedError(EngineError):
    """Part of a batch was still unprocessed at the deadline; `keys` names what was not done, and never will be.

    `unknown` names, inside the layer, what may have been done or may still be; callers then get `OutcomeUnknownError`.
    """

    code = "unprocessed"
    status = 429
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        operation: str,
        keys: Sequence[Mapping[str, Any]],
        unknown: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message, operation=operation)
        self.keys = tuple(keys)
        self.unknown = tuple(unknown)

    @property
    def details(self) -> dict[str, Any]:
        """The keys, as the caller named them."""
        return {"keys": [dict(key) for key in self.keys]}


class EngineUnavailableError(EngineError):
    """DynamoDB could not be reached, or failed on its side, and retries did not outlast it."""

    code = "engine_unavailable"
    status = 503
    retryable = True


class OutcomeUnknownError(EngineUnavailableError):
    """A write may have been applied, or may still be: no usable answer came, and nothing stored proves either.

    It is neither a success nor a refusal. `key` names the item as the caller did, and `revision` is the one that the
    write gives it: a consistent read that shows this revision proves that the write was applied. No read proves that it
    was not: it may still be. `retryable` is True where the same request can be sent again, because it carries an
    idempotency key.

    Of a batch, `keys` names the items of which this is so, and `unprocessed` those that were certainly not written; all
    others were.
    """

    code = "outcome_unknown"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        aws_code: str = "",
        key: Mapping[str, Any] | None = None,
        revision: str | None = None,
        retryable: bool = False,
        keys: Sequence[Mapping[str, Any]] = (),
        unprocessed: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message, operation=operation, aws_code=aws_code)
        self.key = None if key is None else dict(key)
        self.revision = revision
        self.retryable = retryable
        self.keys = tuple(keys)
        self.unprocessed = tuple(unprocessed)

    @property
    def passing(self) -> bool:
        """True: work that is idempotent as a whole does not depend on what became of one of its writes."""
        return True

    @property
    def details(self) -> dict[str, Any]:
        """The key, the revision to look for, and whether the same request can be sent again."""
        found: dict[str, Any] = {
            "resend": self.retryable,
            "key": self.key,
            "revision": self.revision or None,
            "keys": [dict(key) for key in self.keys],
            "unprocessed": [dict(key) for key in self.unprocessed],
        }
        return {name: value for name, value in found.items() if name == "resend" or value}
