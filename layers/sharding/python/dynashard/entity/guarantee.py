"""Write guarantees: how much a write costs to make its outcome known after a lost answer."""

from enum import StrEnum

from dynashard.errors import InvalidQueryError


class WriteGuarantee(StrEnum):
    """What a write promises after a lost answer. Any answer is true; stronger guarantees leave fewer unknown."""

    PLAIN = "plain"
    """The default: costs the write alone. After a lost answer the outcome is often unknown."""
    GUARDED = "guarded"
    """A write reads first. It is not sent if the read refuses it; a put, update or delete then requires the revision
    that it read. Costs 1 read unit and 1 round trip more."""
    EXACTLY_ONCE = "exactly-once"
    """A transaction with a token, which can be sent again safely. Costs twice the write units. The outcome is unknown
    only if DynamoDB cannot be reached before the deadline."""


def guarantee_of(value: str | None, default: WriteGuarantee) -> WriteGuarantee:
    """Return the guarantee with this name, or the default if it is None; raises `InvalidQueryError` for others."""
    if value is None:
        return default
    try:
        return WriteGuarantee(value)
    except ValueError:
        known = ", ".join(WriteGuarantee)
        raise InvalidQueryError(f"handling is {value!r}; it must be one of {known}", field="handling") from None
