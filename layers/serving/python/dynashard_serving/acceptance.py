"""Checks of a new item over REST, direct invocation and queues: it has not expired, and a URL can carry its id."""

import unicodedata
from collections.abc import Mapping, Sequence
from math import floor
from typing import Any, Final

from dynashard.entity import Entity, definition
from dynashard.errors import FieldError, ValidationFailedError

_DOTS: Final = frozenset({".", ".."})
"""Clients resolve these segments of a path, encoded or not."""
_PAST: Final = "The time is in the past, and an expired item cannot be stored. Send a later time, or null."


def refuse_past_expiry(item: Entity, now: float) -> None:
    """Refuse an item if its sender set a time of expiry that has passed. A time that the model derives is accepted.

    Raises:
        ValidationFailedError: with the field.
    """
    name = definition(type(item)).expires
    if name is not None and name in item.model_fields_set:
        refuse_past(name, getattr(item, name), now)


def refuse_past(name: str, expires: Any, now: float) -> None:
    """Refuse a time of expiry that has passed. None and times without a zone are accepted here.

    Raises:
        ValidationFailedError: with the field.
    """
    # Expiry is stored in whole seconds, and readers see an item only before that second.
    if expires is not None and expires.tzinfo is not None and floor(expires.timestamp()) <= now:
        raise ValidationFailedError(FieldError(name, _PAST, "datetime_future"))


def refuse_unaddressable(fields: Sequence[str], values: Mapping[str, Any]) -> None:
    """Refuse ids that a path cannot carry, so that every item that is listed can also be read.

    An HTTP API decodes paths before it passes them on, and cuts them at a decoded `?`. A decoded `/` looks like
    a separator, so only the last id may hold one. Clients resolve `.` and `..`, and proxies refuse control
    characters.

    Raises:
        ValidationFailedError: with each field at fault.
    """
    errors = []
    for name in fields:
        value = str(values[name])
        problem = None
        if value in _DOTS:
            problem = f"A URL cannot carry {value!r}, because clients resolve it. Use another value."
        elif "?" in value:
            problem = "A URL cannot carry a ? here, because the gateway cuts the path at it. Remove it."
        elif "/" in value and name != fields[-1]:
            problem = f"A URL cannot carry a / here. Only {fields[-1]}, the last field of the address, may hold one."
        elif any(unicodedata.category(character) == "Cc" for character in value):
            problem = "A URL cannot carry control characters, such as line breaks. Remove them."
        if problem:
            errors.append(FieldError(name, problem, "unaddressable"))
    if errors:
        raise ValidationFailedError(*errors)
