"""What is asked for is not so, or not now: items, shard counts, and work that others do."""

from collections.abc import Sequence
from typing import Any

from dynashard.errors.root import DynashardError


class NotFoundError(DynashardError):
    """No live item has this key."""

    code = "not_found"
    status = 404


class AlreadyExistsError(DynashardError):
    """A live item has this key already."""

    code = "already_exists"
    status = 409


class RevisionMismatchError(DynashardError):
    """The item is not at the revision the caller named. `current` is the stored one, if the item is live."""

    code = "revision_mismatch"
    status = 412

    def __init__(self, message: str, *, current: str | None = None) -> None:
        super().__init__(message)
        self.current = current


class TransactionRefusedError(DynashardError):
    """A step of a transaction asks for what is not so; nothing of the transaction was done.

    `step` is its number, from 0; `reason` is the code of what a single write would have raised: `already_exists`,
    `not_found` or `revision_mismatch`; `cause`, inside the layer, is that error.
    """

    code = "transaction_refused"
    status = 409
    told = ("step", "reason")

    def __init__(
        self,
        message: str,
        *,
        step: int,
        reason: str,
        cause: "NotFoundError | AlreadyExistsError | RevisionMismatchError | None" = None,
    ) -> None:
        super().__init__(message)
        self.step = step
        self.reason = reason
        self.cause = cause


class RequestInProgressError(DynashardError):
    """The first request with this idempotency key is under way; only for creates that are done in steps."""

    code = "request_in_progress"
    status = 409
    retryable = True


class WriteContendedError(DynashardError):
    """Other writers kept changing the item between reading and writing it."""

    code = "write_contended"
    status = 409
    retryable = True


class AnswerTooLargeError(DynashardError):
    """What was asked for is larger than one answer may be. Ask for less at a time."""

    code = "answer_too_large"
    status = 406


class UndecodableItemError(DynashardError):
    """A stored item does not fit its entity's declaration: the declaration has changed incompatibly."""

    code = "undecodable_item"


class ReshardRefusedError(DynashardError):
    """A change of a shard count that cannot be, or not now. `reason` is a stable word for why."""

    code = "reshard_refused"
    status = 409
    told = ("reason",)

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class TopologyChangedError(DynashardError):
    """A record of the topology was changed by somebody else since it was read."""

    code = "topology_changed"
    status = 409
    retryable = True


class QueueUnavailableError(DynashardError):
    """The queue did not take all that was to be done later. `left` are the positions of what it did not take."""

    code = "queue_unavailable"
    status = 503
    retryable = True

    def __init__(self, message: str, *, left: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.left = tuple(left)

    @property
    def details(self) -> dict[str, Any]:
        """The positions of what was not accepted, counted from 0."""
        return {"not_accepted": list(self.left)} if self.left else {}


class OverloadedError(DynashardError):
    """The request asks for many items while DynamoDB is overloaded; nothing was done.

    Requests for single items are still served. `retry_after` is in seconds.
    """

    code = "overloaded"
    status = 503
    retryable = True
    told = ("retry_after",)

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after
