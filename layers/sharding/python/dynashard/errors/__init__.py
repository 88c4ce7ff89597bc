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

from dynashard.errors.engine import (
    CancellationReason,
    ConditionFailedError,
    EngineError,
    EngineUnavailableError,
    OutcomeUnknownError,
    TransactionCanceledError,
    TransactionConflictError,
    UnprocessedError,
)
from dynashard.errors.input import (
    MOST_FIELD_ERRORS,
    FieldError,
    IdempotencyKeyReusedError,
    InputError,
    InvalidCursorError,
    InvalidKeyError,
    InvalidQueryError,
    InvalidValueError,
    ItemTooLargeError,
    QueryTooWideError,
    RequestTooLargeError,
    ValidationFailedError,
)
from dynashard.errors.refusals import (
    AlreadyExistsError,
    AnswerTooLargeError,
    NotFoundError,
    OverloadedError,
    QueueUnavailableError,
    RequestInProgressError,
    ReshardRefusedError,
    RevisionMismatchError,
    TopologyChangedError,
    TransactionRefusedError,
    UndecodableItemError,
    WriteContendedError,
)
from dynashard.errors.root import ConfigurationError, DeclarationError, DynashardError
from dynashard.errors.throttles import (
    KeyRangeThrottledError,
    TableThrottledError,
    ThrottledError,
    ThrottleKind,
    ThrottleReason,
)

__all__ = [
    "MOST_FIELD_ERRORS",
    "AlreadyExistsError",
    "AnswerTooLargeError",
    "CancellationReason",
    "ConditionFailedError",
    "ConfigurationError",
    "DeclarationError",
    "DynashardError",
    "EngineError",
    "EngineUnavailableError",
    "FieldError",
    "IdempotencyKeyReusedError",
    "InputError",
    "InvalidCursorError",
    "InvalidKeyError",
    "InvalidQueryError",
    "InvalidValueError",
    "ItemTooLargeError",
    "KeyRangeThrottledError",
    "NotFoundError",
    "OutcomeUnknownError",
    "OverloadedError",
    "QueryTooWideError",
    "QueueUnavailableError",
    "RequestInProgressError",
    "RequestTooLargeError",
    "ReshardRefusedError",
    "RevisionMismatchError",
    "TableThrottledError",
    "ThrottleKind",
    "ThrottleReason",
    "ThrottledError",
    "TopologyChangedError",
    "TransactionCanceledError",
    "TransactionConflictError",
    "TransactionRefusedError",
    "UndecodableItemError",
    "UnprocessedError",
    "ValidationFailedError",
    "WriteContendedError",
]
