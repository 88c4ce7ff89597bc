"""When an item expires: from a field's time to the table's epoch seconds, and back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import floor
from typing import Any

from dynashard.errors import InvalidValueError, UndecodableItemError
from dynashard.schema import EXPIRES_AT, PK, SK


def encode_expiry(name: str, value: datetime) -> dict[str, str]:
    """A time of expiry as it is stored, kept to the second.

    Raises:
        InvalidValueError: it has no zone, or lies outside the years that can be told.
    """
    if value.tzinfo is None:
        raise InvalidValueError(f"{name}: the time needs a zone", field=name)
    seconds = floor(value.timestamp())
    try:
        datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidValueError(f"{name}: the time lies outside the years 1 to 9999 in UTC", field=name) from None
    return {"N": str(seconds)}


def decode_expiry(entity: str, wire: Mapping[str, Any]) -> datetime:
    """The time of expiry of a stored item that has one.

    Raises:
        UndecodableItemError: what is stored is no time.
    """
    stored = wire[EXPIRES_AT]
    try:
        # Adopted items may hold fractions of a second.
        return datetime.fromtimestamp(floor(float(stored["N"])), UTC)
    except (KeyError, OverflowError, ValueError, OSError):
        raise UndecodableItemError(
            f"{entity} at {wire.get(PK)} {wire.get(SK)}: {EXPIRES_AT} {stored} is no time in epoch seconds"
        ) from None
