"""Every error that a client raises: one tree, with the codes and the statuses of the backend.

    DynashardError                      dynashard_error         500
    ├── AlreadyExistsError              already_exists          409
    ├── AnswerTooLargeError             answer_too_large        406
    ├── ClockOffError                   clock_off               503
    ├── ConfigurationError              wrong_configuration     500
    ├── EngineError                     engine_error            502
    │   ├── EngineUnavailableError      engine_unavailable      503
    │   │   └── OutcomeUnknownError     outcome_unknown         503
    │   ├── ThrottledError              throttled               429
    │   │   ├── KeyRangeThrottledError  key_range_throttled     429
    │   │   └── TableThrottledError     table_throttled         429
    │   ├── TransactionConflictError    transaction_conflict    409
    │   └── UnprocessedError            unprocessed             429
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
    ├── RefusedError                    refused                 400
    ├── RequestInProgressError          request_in_progress     409
    ├── RevisionMismatchError           revision_mismatch       412
    ├── TransactionRefusedError         transaction_refused     409
    ├── UndecodableItemError            undecodable_item        500
    │   └── NewerItemError              newer_item              503
    └── WriteContendedError             write_contended         409

A refusal whose code is not among them is a `RefusedError` with that code and status. docs/errors.md says of each code
when it is returned, and whether the same request may succeed later.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple


class FieldError(NamedTuple):
    """What is wrong with one field: its path such as `address.lines.0`, a sentence, and a stable code."""

    field: str
    message: str
    code: str


class DynashardError(Exception):
    """Root of the tree.

    Attributes:
        code: the stable code.
        status: the HTTP status.
        errors: the fields at fault.
        details: data for programs, such as `revision` of an unknown outcome.
        retry_after: after how many seconds the same request can succeed; None if it cannot.
    """

    code: str = "dynashard_error"
    status: int = 500

    def __init__(
        self,
        message: str,
        *,
        errors: Sequence[FieldError] = (),
        details: Mapping[str, Any] = MappingProxyType({}),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.errors = tuple(errors)
        self.details = dict(details)
        self.retry_after = retry_after

    def __init_subclass__(cls, *, code: str = "", status: int = 0) -> None:
        """Declare an error; what it omits is that of its base."""
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.status = status or cls.status

    @property
    def retryable(self) -> bool:
        """Whether the same request can succeed later."""
        return self.retry_after is not None

    @property
    def field(self) -> str | None:
        """The first field at fault, if there is one."""
        named = (error.field for error in self.errors if error.field)
        return next(named, None) or self.details.get("field")


class AlreadyExistsError(DynashardError, code="already_exists", status=409):
    """A live item has this key already."""


class AnswerTooLargeError(DynashardError, code="answer_too_large", status=406):
    """The answer would be larger than one answer may be. Ask for less at a time."""


class ClockOffError(DynashardError, code="clock_off", status=503):
    """The clock of the process that answered is off, so it writes no items that are placed by their time."""


class ConfigurationError(DynashardError, code="wrong_configuration"):
    """A setting is missing or wrong."""


class EngineError(DynashardError, code="engine_error", status=502):
    """DynamoDB refused a request of the backend."""


class EngineUnavailableError(EngineError, code="engine_unavailable", status=503):
    """The backend, or DynamoDB behind it, could not be reached, or failed, and retries did not outlast it."""


class OutcomeUnknownError(EngineUnavailableError, code="outcome_unknown"):
    """A write may have been applied, or may still be: no usable answer came, and nothing proves either.

    It is neither a success nor a refusal.
    """

    @property
    def revision(self) -> str | None:
        """The revision that the write gives the item: a consistent read that shows it proves that it was applied."""
        return self.details.get("revision")


class ThrottledError(EngineError, code="throttled", status=429):
    """DynamoDB throttled the request, and retries did not outlast it."""


class KeyRangeThrottledError(ThrottledError, code="key_range_throttled"):
    """One key range is hot."""


class TableThrottledError(ThrottledError, code="table_throttled"):
    """The table, an index, the account, the function or the gateway has reached a limit."""


class TransactionConflictError(EngineError, code="transaction_conflict", status=409):
    """Another transaction holds the item."""


class UnprocessedError(EngineError, code="unprocessed", status=429):
    """Part of a batch was not done, and never will be."""


class ExhaustedError(DynashardError, code="exhausted", status=409):
    """A number cannot be changed by that much, because of its floor or its ceiling; nothing was changed."""


class InputError(DynashardError, code="invalid_input", status=422):
    """The caller's input cannot be used; nothing was changed."""


class IdempotencyKeyReusedError(InputError, code="idempotency_key_reused"):
    """An earlier, different request had this idempotency key."""


class InvalidCursorError(InputError, code="invalid_cursor", status=400):
    """A cursor is damaged, forged, or was issued for another entity, tenant or query."""


class UnsupportedCursorError(InvalidCursorError, code="unsupported_cursor"):
    """A cursor is genuine, but of a format that the backend's release does not read."""


class InvalidKeyError(InputError, code="invalid_key"):
    """A key field is missing, empty, too long, or would make two different keys one string."""


class KeyTooFarAheadError(InvalidKeyError, code="key_too_far_ahead"):
    """A key begins with a time too far in the future. `details` has the bound in seconds, and the backend's time."""


class InvalidQueryError(InputError, code="invalid_query"):
    """A listing cannot be done: an unknown index, a limit out of range, a prefix together with a range."""


class QueryTooWideError(InvalidQueryError, code="query_too_wide"):
    """A listing or a count would send more Queries than one request may."""


class InvalidValueError(InputError, code="invalid_value"):
    """DynamoDB cannot store a value exactly."""


class ItemTooLargeError(InputError, code="item_too_large", status=413):
    """The item is larger than an item may be; `details` has the `limit` in bytes."""


class RequestTooLargeError(InputError, code="request_too_large", status=413):
    """The request holds more values than one request may; `details` has the `limit`."""


class ValidationFailedError(InputError, code="validation_failed"):
    """Fields or parameters are not accepted: `errors` names them."""


class NotFoundError(DynashardError, code="not_found", status=404):
    """No live item has this key."""


class NotUniqueError(DynashardError, code="not_unique", status=409):
    """Another live item has the value of a unique field; `details` names the fields."""


class OverloadedError(DynashardError, code="overloaded", status=503):
    """The request asks for many items while DynamoDB is overloaded; nothing was done."""


class QueueUnavailableError(DynashardError, code="queue_unavailable", status=503):
    """The backend's queue did not accept what was sent."""


class RefusedError(DynashardError, code="refused", status=400):
    """A refusal without a class of its own, such as `unauthenticated`: `code` and `status` are those of the answer."""


class RequestInProgressError(DynashardError, code="request_in_progress", status=409):
    """The first request with this idempotency key is still running."""


class RevisionMismatchError(DynashardError, code="revision_mismatch", status=412):
    """The item is not at the revision that the caller named."""


class TransactionRefusedError(DynashardError, code="transaction_refused", status=409):
    """A step's precondition does not hold; `details` has the `step` and the `reason`."""


class UndecodableItemError(DynashardError, code="undecodable_item"):
    """A stored item, or an answer, does not fit the declaration."""


class NewerItemError(UndecodableItemError, code="newer_item", status=503):
    """The item is stored in a later version than the release that answered knows; `details` has both numbers."""


class WriteContendedError(DynashardError, code="write_contended", status=409):
    """Other writers kept changing the item between reading and writing it."""


def _family(root: type[DynashardError]) -> Iterator[type[DynashardError]]:
    yield root
    for child in root.__subclasses__():
        yield from _family(child)


CLASSES: Final[Mapping[str, type[DynashardError]]] = {each.code: each for each in _family(DynashardError)}
"""The classes by their codes."""
