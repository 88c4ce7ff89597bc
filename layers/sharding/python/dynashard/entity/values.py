"""Values that fields store or restore in a way of their own: models, times of expiry, durations, and JSON."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from dynashard.errors import InvalidValueError


def members(model: BaseModel) -> Mapping[str, Any]:
    """Return what is stored of a model inside an item: its fields, but none that another version did not store."""
    values, known = model.__dict__, type(model).model_fields
    if len(values) == len(known) and None not in values.values():
        return values
    given = model.model_fields_set
    # Cached properties keep their values beside the fields.
    return {
        name: value
        for name, value in values.items()
        if name in known and (value is not None or name in given or not known[name].is_required())
    }


def encoded_expiry(name: str, value: datetime) -> dict[str, str]:
    """Return a time of expiry as it is stored, in epoch seconds."""
    return {"N": str(_expiry_seconds(name, value))}


def stored_expiry(name: str, value: datetime) -> datetime:
    """Return a time of expiry as readers get it, which is to the second."""
    return datetime.fromtimestamp(_expiry_seconds(name, value), UTC)


def _expiry_seconds(name: str, value: datetime) -> int:
    if value.tzinfo is None:
        raise InvalidValueError(f"{name}: the time needs a time zone", field=name)
    # A float of the last microseconds of the year 9999 is one of the year after.
    seconds = int(value.replace(microsecond=0).timestamp())
    try:
        datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidValueError(f"{name}: the time lies outside the years 1 to 9999 in UTC", field=name) from None
    return seconds


def duration(seconds: Any) -> Any:
    """Return the duration of a number of seconds; other values as they are."""
    if isinstance(seconds, int | Decimal):
        # Pydantic would convert a number of seconds to a float, which loses microseconds. It refuses too large ones.
        with suppress(OverflowError):
            return timedelta(microseconds=int(seconds * 1_000_000))
    return seconds


def json_numbers(value: Any) -> Any:
    """Return the value with floats instead of decimals that are exact floats, because JSON has only floats."""
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else value
    if isinstance(value, list):
        return [json_numbers(each) for each in value]
    return {name: json_numbers(each) for name, each in value.items()} if isinstance(value, dict) else value
