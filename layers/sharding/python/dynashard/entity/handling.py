"""How far writes go to be able to say what became of them when an answer is lost."""

from enum import StrEnum

from dynashard.errors import InvalidQueryError


class Handling(StrEnum):
    """A level of care. Whatever the level, an answer is true; higher ones are unknown less often, and cost more."""

    PLAIN = "plain"
    """The default: not one request or unit more than the write itself. A lost answer is often unknown."""
    GUARDED = "guarded"
    """A write reads first. What the read refuses is never sent; a put, update or delete then requires the revision that
    it read. 1 read unit, 1 round trip."""
    EXACTLY_ONCE = "exactly-once"
    """A transaction with a token, which may be sent again freely: twice the write units. Unknown only if DynamoDB
    cannot be reached any more before the deadline."""


def handling_of(value: str | None, default: Handling) -> Handling:
    """The level that a caller names; the default if none is named.

    Raises:
        InvalidQueryError: there is no such level.
    """
    if value is None:
        return default
    try:
        return Handling(value)
    except ValueError:
        known = ", ".join(Handling)
        raise InvalidQueryError(f"handling is {value!r}; it must be one of {known}", field="handling") from None
