"""What a new item may not be, whatever way it comes: expired already, or under an id that no URL can carry."""

import unicodedata
from collections.abc import Mapping, Sequence
from math import floor
from typing import Any, Final

from dynashard.entity import Entity, definition
from dynashard.errors import FieldError, ValidationFailedError

_DOTS: Final = frozenset({".", ".."})
"""Clients resolve these segments of a path, encoded or not."""
_PAST: Final = "The time is in the past: an item that has expired cannot be stored. Send a later time, or null."


def refuse_past_expiry(item: Entity, now: float) -> None:
    """Refuse an item whose sender gave it a time of expiry that has passed.

    Args:
        item: the item. A time that follows from other fields is not refused.
        now: the time of acceptance, in epoch seconds.

    Raises:
        ValidationFailedError: with the field.
    """
    name = definition(type(item)).expires
    if name is not None and name in item.model_fields_set:
        refuse_past(name, getattr(item, name), now)


def refuse_past(name: str, expires: Any, now: float) -> None:
    """Refuse a time of expiry that has passed; None and times without a zone are not its business.

    Raises:
        ValidationFailedError: with the field.
    """
    # Expiry is kept to the second, and an item is there for readers before that second.
    if expires is not None and expires.tzinfo is not None and floor(expires.timestamp()) <= now:
        raise ValidationFailedError(FieldError(name, _PAST, "datetime_future"))


def refuse_unaddressable(fields: Sequence[str], values: Mapping[str, Any]) -> None:
    """Refuse ids that no path can carry, so that every item can be read by the way it is listed.

    An HTTP API decodes paths before it hands them over, and cuts them at a decoded `?`. A decoded `/` looks like any
    other, so only the last id may hold one. Clients resolve `.` and `..`, and proxies refuse control characters.

    Args:
        fields: the key fields of an item's address, in order.
        values: their values as they stand in JSON.

    Raises:
        ValidationFailedError: with each field at fault.
    """
    errors = []
    for name in fields:
        value = str(values[name])
        problem = None
        if value in _DOTS:
            problem = f"No URL can carry {value!r}: clients resolve it. Choose another."
        elif "?" in value:
            problem = "No URL can carry a ? here: the gateway cuts the path at it. Leave it out."
        elif "/" in value and name != fields[-1]:
            problem = f"No URL can carry a / here: only {fields[-1]}, the last field of the address, may hold it."
        elif any(unicodedata.category(character) == "Cc" for character in value):
            problem = "No URL can carry control characters, such as line breaks. Leave them out."
        if problem:
            errors.append(FieldError(name, problem, "unaddressable"))
    if errors:
        raise ValidationFailedError(*errors)
