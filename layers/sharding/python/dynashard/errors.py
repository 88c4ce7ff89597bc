"""Every error of the layer: one tree, stable codes, and a message that tells the reader what to do.

    DynashardError                       code                    status  retryable
    ├── DeclarationError                 wrong_declaration       500     no
    ├── ConfigurationError               wrong_configuration     500     no
    ├── InputError                       invalid_input           422     no
    │   ├── InvalidKeyError              invalid_key             422     no
    │   ├── InvalidValueError            invalid_value           422     no
    │   ├── InvalidQueryError            invalid_query           422     no
    │   │   └── QueryTooWideError        query_too_wide          422     no
    │   ├── InvalidCursorError           invalid_cursor          400     no
    │   ├── ItemTooLargeError            item_too_large          413     no
    │   ├── ValidationFailedError        validation_failed       422     no
    │   ├── RequestTooLargeError         request_too_large       413     no
    │   └── IdempotencyKeyReusedError    idempotency_key_reused  422     no
    ├── NotFoundError                    not_found               404     no
    ├── AlreadyExistsError               already_exists          409     no
    ├── RevisionMismatchError            revision_mismatch       412     no
    ├── TransactionRefusedError          transaction_refused     409     no
    ├── RequestInProgressError           request_in_progress     409     yes
    ├── WriteContendedError              write_contended         409     yes
    ├── AnswerTooLargeError              answer_too_large        406     no
    ├── UndecodableItemError             undecodable_item        500     no
    ├── ReshardRefusedError              reshard_refused         409     no
    ├── TopologyChangedError             topology_changed        409     yes
    ├── QueueUnavailableError            queue_unavailable       503     yes
    ├── OverloadedError                  overloaded              503     yes
    └── EngineError                      engine_error            502     no
        ├── ConditionFailedError         condition_failed        409     no
        ├── TransactionCanceledError     transaction_canceled    409     no
        ├── TransactionConflictError     transaction_conflict    409     yes
        ├── ThrottledError               throttled               429     yes
        │   ├── KeyRangeThrottledError   key_range_throttled     429     yes
        │   └── TableThrottledError      table_throttled         429     yes
        ├── UnprocessedError             unprocessed             429     yes
        └── EngineUnavailableError       engine_unavailable      503     yes
            └── OutcomeUnknownError      outcome_unknown         503     no, unless it says so

`code` is what REST and direct invocation answer; `status` is the HTTP status it maps to; `retryable` says
whether the same request can succeed later. The keyword arguments of an error become its attributes and, where
they help a caller, its `details`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final


class DynashardError(Exception):
    """Root of the tree."""

    code: ClassVar[str] = "dynashard_error"
    status: ClassVar[int] = 500
    retryable: bool = False

    @property
    def details(self) -> dict[str, Any]:
        """What a caller may be told beyond code and message; JSON values only."""
        return {}

    @property
    def passing(self) -> bool:
        """Whether idempotent work, such as the message of a queue, can be done again later."""
        return self.retryable


class DeclarationError(DynashardError):
    """An entity is declared wrongly; raised while its class is created."""

    code = "wrong_declaration"

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(f"{entity}: {reason}")
        self.entity = entity
        self.reason = reason


class ConfigurationError(DynashardError):
    """A setting is missing or wrong."""

    code = "wrong_configuration"


class InputError(DynashardError):
    """The caller's input cannot be used; nothing was sent.

    `field` names the field at fault, where there is one.
    """

    code = "invalid_input"
    status = 422

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    @property
    def details(self) -> dict[str, Any]:
        """The field at fault."""
        return {} if self.field is None else {"field": self.field}


class InvalidKeyError(InputError):
    """A key field is missing, empty, too long, or would make two different keys one string."""

    code = "invalid_key"


class InvalidValueError(InputError):
    """A value that DynamoDB cannot store exactly: NaN, infinity, an empty set, too many digits."""

    code = "invalid_value"


class InvalidQueryError(InputError):
    """A listing that cannot be: an unknown index, a limit out of range, a prefix together with a range."""

    code = "invalid_query"


class QueryTooWideError(InvalidQueryError):
    """A listing, a scan or a count would send more Queries than one request may."""

    code = "query_too_wide"


class InvalidCursorError(InputError):
    """A cursor that is damaged, forged, or was issued for another entity, tenant or query."""

    code = "invalid_cursor"
    status = 400


class ItemTooLargeError(InputError):
    """The item is larger than DynamoDB takes, less the room a mark needs. Sizes are in bytes.

    `size` is None where only DynamoDB could tell: an update that made the item too large.
    """

    code = "item_too_large"
    status = 413

    def __init__(self, message: str, *, size: int | None, limit: int) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit

    @property
    def details(self) -> dict[str, Any]:
        """Size, where it is known, and limit, in bytes."""
        return {"limit": self.limit} if self.size is None else {"size": self.size, "limit": self.limit}


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field: its path such as `address.lines.0`, a sentence, and a stable code."""

    field: str
    message: str
    code: str


MOST_FIELD_ERRORS: Final = 50
"""The most fields that one error names. The others are counted."""
_SHOWN_NAME: Final = 100


class ValidationFailedError(InputError):
    """Fields or parameters are not accepted.

    `errors` names the first 50 of them, and `omitted` says how many more there are.
    """

    code = "validation_failed"

    def __init__(self, *errors: FieldError, omitted: int = 0) -> None:
        self.errors = errors[:MOST_FIELD_ERRORS]
        self.omitted = omitted + len(errors) - len(self.errors)
        names = ", ".join(sorted({error.field[:_SHOWN_NAME] or "the body" for error in self.errors}))
        more = f", and {self.omitted} more" if self.omitted else ""
        super().__init__(f"Not accepted: {names}{more}.")

    @property
    def details(self) -> dict[str, Any]:
        """The fields at fault."""
        return {"errors": [asdict(error) for error in self.errors]}


class RequestTooLargeError(InputError):
    """The request holds more values than one request may. `limit` is the bound."""

    code = "request_too_large"
    status = 413

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit

    @property
    def details(self) -> dict[str, Any]:
        """The bound."""
        return {"limit": self.limit}


class IdempotencyKeyReusedError(InputError):
    """An idempotency key came with another request before."""

    code = "idempotency_key_reused"


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

    @property
    def details(self) -> dict[str, Any]:
        """The step and the reason."""
        return {"step": self.step, "reason": self.reason}


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

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def details(self) -> dict[str, Any]:
        """The reason."""
        return {"reason": self.reason}


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

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def details(self) -> dict[str, Any]:
        """When to try again, in seconds."""
        return {"retry_after": self.retry_after}


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

    code: str
    item: Mapping[str, Any] | None = None
    message: str = ""


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


class TransactionConflictError(EngineError):
    """Another transaction holds the item."""

    code = "transaction_conflict"
    status = 409
    retryable = True


class ThrottleKind(StrEnum):
    """Which limit a throttle stands for. Only the first is cured by more shards."""

    KEY_RANGE = "key_range"
    PROVISIONED = "provisioned"
    ACCOUNT = "account"
    ON_DEMAND_MAXIMUM = "on_demand_maximum"
    UNKNOWN = "unknown"


_REASON: Final = re.compile(r"(?P<resource>Table|Index)(?P<operation>Read|Write)(?P<limit>[A-Za-z]+)Exceeded")
_KINDS: Final = {
    "KeyRangeThroughput": ThrottleKind.KEY_RANGE,
    "ProvisionedThroughput": ThrottleKind.PROVISIONED,
    "AccountLimit": ThrottleKind.ACCOUNT,
    "MaxOnDemandThroughput": ThrottleKind.ON_DEMAND_MAXIMUM,
}
_REMEDIES: Final = {
    ThrottleKind.KEY_RANGE: "One key range of {where} is hot: raise its shard count.",
    ThrottleKind.PROVISIONED: "The provisioned {units} capacity of {where} is used up: raise it, or bill on demand.",
    ThrottleKind.ACCOUNT: "The account's quota of {units} units for {where} is used up: ask for a higher one.",
    ThrottleKind.ON_DEMAND_MAXIMUM: "The maximum {units} throughput configured for {where} is reached: raise it.",
    ThrottleKind.UNKNOWN: "Try again later.",
}


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """One reason of a throttle: DynamoDB's text, such as `TableWriteKeyRangeThroughputExceeded`, and its ARN."""

    reason: str
    resource: str

    @property
    def kind(self) -> ThrottleKind:
        """The limit that was met."""
        told = _REASON.fullmatch(self.reason)
        return _KINDS.get(told["limit"], ThrottleKind.UNKNOWN) if told else ThrottleKind.UNKNOWN

    @property
    def on_index(self) -> bool:
        """Whether it is an index's limit; `index` is still None if DynamoDB does not say which one's."""
        told = _REASON.fullmatch(self.reason)
        return self.index is not None or (told is not None and told["resource"] == "Index")

    @property
    def index(self) -> str | None:
        """The slot of the index whose limit it is, such as `GSI1`; None for the table's."""
        return self.resource.partition("/index/")[2] or None

    @property
    def reading(self) -> bool:
        """Whether a limit on reading was met. Neither this nor `writing` if the reason is unknown."""
        told = _REASON.fullmatch(self.reason)
        return told is not None and told["operation"] == "Read"

    @property
    def writing(self) -> bool:
        """Whether a limit on writing was met."""
        told = _REASON.fullmatch(self.reason)
        return told is not None and told["operation"] == "Write"

    @property
    def remedy(self) -> str:
        """What to do about it, as a sentence."""
        where = f"index {self.index}" if self.index else "an index" if self.on_index else "the table"
        units = "read" if self.reading else "write"
        return _REMEDIES[self.kind].format(where=where, units=units)


class ThrottledError(EngineError):
    """DynamoDB throttled the request, and retries did not outlast it.

    `reasons` is empty where DynamoDB gave none; `index_blamed` tells whether its message then speaks of the secondary
    indexes, without saying of which. `retry_after` is in seconds. `actions` names those actions of a transaction that
    were throttled, from 0.
    """

    code = "throttled"
    status = 429
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        operation: str,
        aws_code: str,
        reasons: Sequence[ThrottleReason] = (),
        index_blamed: bool = False,
        retry_after: int = 1,
        actions: Sequence[int] = (),
    ) -> None:
        super().__init__(message, operation=operation, aws_code=aws_code)
        self.actions = tuple(actions)
        self.reasons = tuple(reasons)
        self.index_blamed = index_blamed
        self.retry_after = retry_after

    @property
    def details(self) -> dict[str, Any]:
        """When to come back, in seconds, and the reasons without their ARNs."""
        return {"retry_after": self.retry_after, "reasons": sorted({r.reason for r in self.reasons})}


class KeyRangeThrottledError(ThrottledError):
    """One key range is hot: more shards help."""

    code = "key_range_throttled"


class TableThrottledError(ThrottledError):
    """The table, index or account is at a limit of its own: more shards do not help."""

    code = "table_throttled"


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
