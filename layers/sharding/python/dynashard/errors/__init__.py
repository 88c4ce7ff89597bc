"""Every error of the layer: one tree, stable codes, and messages that say what to do.

    DynashardError                      dynashard_error         500
    ├── AlreadyExistsError              already_exists          409
    ├── AnswerTooLargeError             answer_too_large        406
    ├── ClockOffError                   clock_off               503
    ├── ConfigurationError              wrong_configuration     500
    ├── DeclarationError                wrong_declaration       500
    ├── EngineError                     engine_error            502
    │   ├── ConditionFailedError        condition_failed        409
    │   ├── EngineUnavailableError      engine_unavailable      503
    │   │   └── OutcomeUnknownError     outcome_unknown         503
    │   ├── ThrottledError              throttled               429
    │   │   ├── KeyRangeThrottledError  key_range_throttled     429
    │   │   └── TableThrottledError     table_throttled         429
    │   ├── TransactionCanceledError    transaction_canceled    409
    │   ├── TransactionConflictError    transaction_conflict    409
    │   └── UnprocessedError            unprocessed             429
    ├── EventBusUnavailableError        event_bus_unavailable   503
    ├── EventRefusedError               event_refused           502
    ├── ExhaustedError                  exhausted               409
    ├── InputError                      invalid_input           422
    │   ├── IdempotencyKeyReusedError   idempotency_key_reused  422
    │   ├── InvalidCursorError          invalid_cursor          400
    │   │   └── UnsupportedCursorError  unsupported_cursor      400
    │   ├── InvalidKeyError             invalid_key             422
    │   │   └── KeyTooFarAheadError     key_too_far_ahead       422
    │   ├── InvalidQueryError           invalid_query           422
    │   │   └── QueryTooWideError       query_too_wide          422
    │   ├── InvalidValueError           invalid_value           422
    │   ├── ItemTooLargeError           item_too_large          413
    │   ├── RequestTooLargeError        request_too_large       413
    │   └── ValidationFailedError       validation_failed       422
    ├── NotFoundError                   not_found               404
    ├── NotUniqueError                  not_unique              409
    ├── OverloadedError                 overloaded              503
    ├── QueueUnavailableError           queue_unavailable       503
    ├── RequestInProgressError          request_in_progress     409
    ├── ReshardRefusedError             reshard_refused         409
    ├── RevisionMismatchError           revision_mismatch       412
    ├── TopologyChangedError            topology_changed        409
    ├── TransactionRefusedError         transaction_refused     409
    ├── UndecodableItemError            undecodable_item        500
    │   └── NewerItemError              newer_item              503
    └── WriteContendedError             write_contended         409

docs/errors.md says of each code when it is returned, and whether the same request may succeed later. The keyword
arguments of an error become its attributes and, if they help a caller, its `details`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Final, NamedTuple

from dynashard.errors.reasons import CancellationReason as CancellationReason
from dynashard.errors.reasons import ThrottleKind as ThrottleKind
from dynashard.errors.reasons import ThrottleReason as ThrottleReason


@dataclass(eq=False, repr=False)
class DynashardError(Exception):
    """Root of the tree.

    Attributes:
        code: the code in answers of REST and direct invocation.
        status: the HTTP status it maps to.
        retryable: whether the same request can succeed later.
        in_details: names of the attributes that `details` holds, if they are known.
    """

    message: str
    code: ClassVar[str] = "dynashard_error"
    status: ClassVar[int] = 500
    retryable: bool = field(default=False, init=False)
    in_details: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, code: str = "", status: int = 0, retryable: bool | None = None) -> None:
        """Declare an error; constants that it omits are those of its base."""
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.status = status or cls.status
        cls.retryable = cls.retryable if retryable is None else retryable

    def __post_init__(self) -> None:
        super().__init__(self.message)

    @property
    def details(self) -> dict[str, Any]:
        """What a caller may see beyond code and message; JSON values only."""
        return {name: value for name in self.in_details if (value := getattr(self, name)) is not None}

    @property
    def transient(self) -> bool:
        """Whether idempotent work, such as the message of a queue, can be done again later."""
        return self.retryable


class DeclarationError(DynashardError, code="wrong_declaration"):
    """An entity is declared wrongly; raised while its class is created."""

    def __init__(self, entity: str, reason: str) -> None:
        super().__init__(f"{entity}: {reason}")
        self.entity = entity
        self.reason = reason


class ConfigurationError(DynashardError, code="wrong_configuration"):
    """A setting is missing or wrong."""


@dataclass(eq=False, repr=False, kw_only=True)
class InputError(DynashardError, code="invalid_input", status=422):
    """The caller's input cannot be used; nothing was sent. `field` names the field at fault, if there is one."""

    field: str | None = None
    in_details: ClassVar[tuple[str, ...]] = ("field",)


class InvalidKeyError(InputError, code="invalid_key"):
    """A key field is missing, empty, too long, or would make two different keys one string."""


@dataclass(eq=False, repr=False, kw_only=True)
class KeyTooFarAheadError(InvalidKeyError, code="key_too_far_ahead"):
    """A key begins with a time further in the future than a write may be, `ahead` seconds after `now`, in ISO 8601.

    It can be written in `wait` seconds. Only entities whose placement is `epochs` have such keys.
    """

    ahead: float
    now: str
    wait: float
    in_details: ClassVar[tuple[str, ...]] = ("field", "ahead", "now")

    @property
    def transient(self) -> bool:
        """True: the message of a queue can wait for the time of its item."""
        return True


class InvalidValueError(InputError, code="invalid_value"):
    """DynamoDB cannot store a value exactly: NaN, infinity, an empty set, too many digits."""


class InvalidQueryError(InputError, code="invalid_query"):
    """A listing cannot be done: an unknown index, a limit out of range, a prefix together with a range."""


class QueryTooWideError(InvalidQueryError, code="query_too_wide"):
    """A listing, a scan or a count would send more Queries than one request may."""


class InvalidCursorError(InputError, code="invalid_cursor", status=400):
    """A cursor is damaged, forged, or was issued for another entity, tenant or query."""


class UnsupportedCursorError(InvalidCursorError, code="unsupported_cursor"):
    """A cursor is genuine, but of a format that this release does not read: that of a much older or a newer one."""


@dataclass(eq=False, repr=False, kw_only=True)
class ItemTooLargeError(InputError, code="item_too_large", status=413):
    """The item is larger than DynamoDB takes, less the room for a relocation marker. Sizes are in bytes.

    `size` is None if only DynamoDB knows it: an update made the item too large.
    """

    size: int | None
    limit: int
    in_details = ("size", "limit")


class FieldError(NamedTuple):
    """What is wrong with one field: its path such as `address.lines.0`, a sentence, and a stable code."""

    field: str
    message: str
    code: str


MOST_FIELD_ERRORS: Final = 50
"""The most fields that one error names. The others are counted."""
_SHOWN_NAME: Final = 100


class ValidationFailedError(InputError, code="validation_failed"):
    """Fields or parameters are not accepted: `errors` names the first 50, `omitted` counts the others."""

    def __init__(self, *errors: FieldError, omitted: int = 0) -> None:
        self.errors = errors[:MOST_FIELD_ERRORS]
        self.omitted = omitted + len(errors) - len(self.errors)
        # What is wrong with the whole, such as two fields that contradict each other, has no name.
        names = ", ".join(sorted({(error.field or error.message.rstrip("."))[:_SHOWN_NAME] for error in self.errors}))
        more = f", and {self.omitted} more" if self.omitted else ""
        super().__init__(f"Not accepted: {names}{more}.")

    @property
    def details(self) -> dict[str, Any]:
        """The fields at fault."""
        return {"errors": [error._asdict() for error in self.errors]}


@dataclass(eq=False, repr=False, kw_only=True)
class RequestTooLargeError(InputError, code="request_too_large", status=413):
    """The request holds more values than `limit`, the most that one request may."""

    limit: int
    in_details = ("limit",)


class IdempotencyKeyReusedError(InputError, code="idempotency_key_reused"):
    """An earlier, different request had this idempotency key."""


class NotFoundError(DynashardError, code="not_found", status=404):
    """No live item has this key."""


class AlreadyExistsError(DynashardError, code="already_exists", status=409):
    """A live item has this key already."""


@dataclass(eq=False, repr=False, kw_only=True)
class NotUniqueError(DynashardError, code="not_unique", status=409):
    """Another live item has the value of a unique field, or the values of fields that are unique together.

    `fields` names them. Which item has them is not said, because the caller may not be allowed to know.
    """

    fields: Sequence[str]

    @property
    def details(self) -> dict[str, Any]:
        """The fields."""
        return {"fields": list(self.fields)}


@dataclass(eq=False, repr=False, kw_only=True)
class RevisionMismatchError(DynashardError, code="revision_mismatch", status=412):
    """The item is not at the revision the caller named. `current` is the stored one, if the item is live."""

    current: str | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ExhaustedError(DynashardError, code="exhausted", status=409):
    """A number cannot be changed by that much, because of its floor or its ceiling; nothing was changed.

    `available` is by how much it could be changed, at the moment that decided.
    """

    available: int | Decimal
    in_details = ("available",)


@dataclass(eq=False, repr=False, kw_only=True)
class TransactionRefusedError(DynashardError, code="transaction_refused", status=409):
    """A step's precondition does not hold; nothing was written.

    `step` is its number, from 0; `reason` is the code of what a single write would have raised: `already_exists`,
    `exhausted`, `not_found`, `not_unique` or `revision_mismatch`; `cause`, inside the layer, is that error.
    """

    step: int
    reason: str
    cause: NotFoundError | AlreadyExistsError | NotUniqueError | RevisionMismatchError | ExhaustedError | None = None
    in_details = ("step", "reason")


class RequestInProgressError(DynashardError, code="request_in_progress", status=409, retryable=True):
    """The first request with this idempotency key is still running; only for creates that take several steps."""


class WriteContendedError(DynashardError, code="write_contended", status=409, retryable=True):
    """Other writers kept changing the item between reading and writing it."""


@dataclass(eq=False, repr=False, kw_only=True)
class ClockOffError(DynashardError, code="clock_off", status=503, retryable=True):
    """This process's clock is off, by `off` seconds, so it may not decide about items that are placed by their time.

    It neither writes them, nor says that one does not exist because its time has not come. Another process may serve
    the same request.
    """

    off: float
    in_details = ("off",)


class AnswerTooLargeError(DynashardError, code="answer_too_large", status=406):
    """The answer would be larger than one answer may be. Ask for less at a time."""


class UndecodableItemError(DynashardError, code="undecodable_item"):
    """A stored item does not fit its entity's declaration: the declaration has changed incompatibly."""


@dataclass(eq=False, repr=False, kw_only=True)
class NewerItemError(UndecodableItemError, code="newer_item", status=503, retryable=True):
    """A stored item is of a later `version` of its declaration than the one that this release has, `known`.

    Nothing was read or written. A release that declares that version serves the same request.
    """

    version: int
    known: int
    in_details = ("version", "known")


@dataclass(eq=False, repr=False, kw_only=True)
class ReshardRefusedError(DynashardError, code="reshard_refused", status=409):
    """A shard count cannot change so, or not now. `reason` is a stable word for why."""

    reason: str
    in_details = ("reason",)


class TopologyChangedError(DynashardError, code="topology_changed", status=409, retryable=True):
    """Somebody else changed a record of the topology after it was read."""


@dataclass(eq=False, repr=False, kw_only=True)
class QueueUnavailableError(DynashardError, code="queue_unavailable", status=503, retryable=True):
    """The queue did not accept all messages. `not_accepted` are the positions of those that it did not, from 0."""

    not_accepted: Sequence[int] | None = None
    in_details = ("not_accepted",)


@dataclass(eq=False, repr=False, kw_only=True)
class EventBusUnavailableError(DynashardError, code="event_bus_unavailable", status=503, retryable=True):
    """The event bus did not accept all events. The stream delivers their changes again."""


@dataclass(eq=False, repr=False, kw_only=True)
class EventRefusedError(DynashardError, code="event_refused", status=502):
    """The event bus refuses an event, whenever it is sent."""


@dataclass(eq=False, repr=False, kw_only=True)
class OverloadedError(DynashardError, code="overloaded", status=503, retryable=True):
    """The request asks for many items while DynamoDB is overloaded; nothing was done.

    Requests for single items are still served. `retry_after` is in seconds.
    """

    retry_after: int = 1
    in_details = ("retry_after",)


@dataclass(eq=False, repr=False, kw_only=True)
class EngineError(DynashardError, code="engine_error", status=502):
    """DynamoDB refused a request. `aws_code` is its own name for the reason."""

    operation: str = ""
    aws_code: str = ""


@dataclass(eq=False, repr=False, kw_only=True)
class ConditionFailedError(EngineError, code="condition_failed", status=409):
    """A condition of a single write does not hold.

    `item` is the stored item in DynamoDB JSON, None if none is stored. `ambiguous` is True if an earlier attempt
    of the same request may have been executed, or may still be: then the condition may have failed because of it.
    """

    item: Mapping[str, Any] | None
    ambiguous: bool = False
    aws_code: str = "ConditionalCheckFailedException"


@dataclass(eq=False, repr=False, kw_only=True)
class TransactionCanceledError(EngineError, code="transaction_canceled", status=409):
    """A transaction was cancelled as a whole; `reasons` has one entry an action, in order.

    `ambiguous` is True if an earlier attempt of the same request may have been executed, or may still be.
    """

    reasons: Sequence[CancellationReason]
    ambiguous: bool = False
    aws_code: str = "TransactionCanceledException"

    @property
    def overtaken(self) -> bool:
        """Whether conditions that do not hold and conflicts are the only reasons: another writer was first."""
        lost = {CancellationReason.NONE, CancellationReason.CONDITION, CancellationReason.CONFLICT}
        return all(reason.code in lost for reason in self.reasons)


class TransactionConflictError(EngineError, code="transaction_conflict", status=409, retryable=True):
    """Another transaction holds the item."""


@dataclass(eq=False, repr=False, kw_only=True)
class ThrottledError(EngineError, code="throttled", status=429, retryable=True):
    """DynamoDB throttled the request, and retries did not outlast it.

    `reasons` is empty if DynamoDB gave none; `index_blamed` then says whether its message names the secondary indexes,
    without saying which. `retry_after` is in seconds. `actions` are the actions of a transaction that were throttled,
    from 0.
    """

    reasons: Sequence[ThrottleReason] = ()
    index_blamed: bool = False
    retry_after: int = 1
    actions: Sequence[int] = ()

    @property
    def details(self) -> dict[str, Any]:
        """When to try again, in seconds, and the reasons without their ARNs."""
        return {"retry_after": self.retry_after, "reasons": sorted({r.reason for r in self.reasons})}


class KeyRangeThrottledError(ThrottledError, code="key_range_throttled"):
    """One key range is hot: more shards help."""


class TableThrottledError(ThrottledError, code="table_throttled"):
    """The table, index or account has reached a limit: more shards do not help."""


@dataclass(eq=False, repr=False, kw_only=True)
class UnprocessedError(EngineError, code="unprocessed", status=429, retryable=True):
    """Part of a batch was not done; the writes or reads of `keys` were not done and never will be. All others were.

    `retryable` is False if one of them cannot succeed later either; that one's error is the cause.
    """

    keys: Sequence[Mapping[str, Any]]
    retryable: bool = True

    @property
    def details(self) -> dict[str, Any]:
        """The keys, as the caller named them."""
        return {"keys": [dict(key) for key in self.keys]}


class EngineUnavailableError(EngineError, code="engine_unavailable", status=503, retryable=True):
    """DynamoDB could not be reached, or failed on its side, and retries did not outlast it."""


@dataclass(eq=False, repr=False, kw_only=True)
class OutcomeUnknownError(EngineUnavailableError, code="outcome_unknown"):
    """A write may have been applied, or may still be: no usable answer came, and nothing stored proves either.

    It is neither a success nor a refusal. `key` names the item as the caller did, and `revision` is the one that the
    write gives it: a consistent read that shows this revision proves that the write was applied. No read proves that it
    was not. `retryable` is True if the same request can be sent again, because it carries an idempotency key.

    Of a batch, `keys` names the items of which this is so, and `unprocessed` those that were certainly not written; all
    others were.
    """

    key: Mapping[str, Any] | None = None
    revision: str | None = None
    retryable: bool = False
    keys: Sequence[Mapping[str, Any]] = ()
    unprocessed: Sequence[Mapping[str, Any]] = ()

    @property
    def transient(self) -> bool:
        """True: idempotent work can be done again whatever the outcome of one of its writes is."""
        return True

    @property
    def details(self) -> dict[str, Any]:
        """The key, the revision to look for, and whether the same request can be sent again."""
        found: dict[str, Any] = {
            "key": self.key,
            "revision": self.revision,
            "keys": [dict(key) for key in self.keys],
            "unprocessed": [dict(key) for key in self.unprocessed],
        }
        return {"resend": self.retryable} | {name: value for name, value in found.items() if value}
