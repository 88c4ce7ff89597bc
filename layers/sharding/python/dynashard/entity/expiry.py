"""The time of expiry: from a field to the table's epoch seconds, and back; other values raise errors."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import floor
from typing import Any

from dynashard.errors import InvalidValueError, UndecodableItemError
from dynashard.schema import EXPIRES_AT, PK, SK


def encode_expiry(name: str, value: datetime) -> dict[str, str]:
    """Return a time of expiry as it is stored, to the second; it needs a time zone."""
    if value.tzinfo is None:
        raise InvalidValueError(f"{name}: the time needs a time zone", field=name)
    seconds = floor(value.timestamp())
    try:
        datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidValueError(f"{name}: the time lies outside the years 1 to 9999 in UTC", field=name) from None
    return {"N": str(seconds)}


def decode_expiry(entity: str, wire: Mapping[str, Any]) -> datetime:
    """Return the time of expiry of a stored item that has one."""
    stored = wire[EXPIRES_AT]
    try:
        # Adopted items may hold fractions of a second.
        return datetime.fromtimestamp(floor(float(stored["N"])), UTC)
    except (KeyError, OverflowError, ValueError, OSError):
        raise undecodable(entity, wire, f"{EXPIRES_AT} {stored} is not a time in epoch seconds") from None


def undecodable(entity: str, wire: Mapping[str, Any], problem: str) -> UndecodableItemError:
    """Return the error for a stored item with this problem."""
    return UndecodableItemError(f"{entity} at {wire.get(PK)} {wire.get(SK)}: {problem}")
