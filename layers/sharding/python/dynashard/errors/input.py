"""The caller's input cannot be used; nothing was sent."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

from dynashard.errors.root import DynashardError


class InputError(DynashardError):
    """The caller's input cannot be used; nothing was sent.

    `field` names the field at fault, where there is one.
    """

    code = "invalid_input"
    status = 422
    told: ClassVar[tuple[str, ...]] = ("field",)

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


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
    told = ("size", "limit")

    def __init__(self, message: str, *, size: int | None, limit: int) -> None:
        super().__init__(message)
        self.size = size
        self.limit = limit


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
    told = ("limit",)

    def __init__(self, message: str, *, limit: int) -> None:
        super().__init__(message)
        self.limit = limit


class IdempotencyKeyReusedError(InputError):
    """An idempotency key came with another request before."""

    code = "idempotency_key_reused"
