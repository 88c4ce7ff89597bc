"""Cells of CSV: a field of plain values of one type has a text in its cell, and any other field has JSON."""

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, Final
from uuid import UUID

from dynashard.entity.checks import plain_types
from dynashard_tools.load.rows import json_value

_TEXTS: Final = (str, bytes, bool, int, float, Decimal, datetime, date, time, timedelta, UUID, Enum)
"""Types whose values a cell of CSV has as a text. Values of others are JSON in it."""


def is_plain(annotation: Any) -> bool:
    """Whether a field with this annotation has plain values of one type, which then says what a cell means.

    In a field of `int | str`, it would not say whether `1` is a number or a text.
    """
    kinds = plain_types(annotation) - {NoneType}
    return len(kinds) == 1 and all(issubclass(kind, _TEXTS) for kind in kinds)


def cell_of(value: Any, *, plain: bool) -> str:
    """Return the cell of a JSON value.

    A text is its own cell. In a field that is not plain, a text that would be read as something else, such as `1.5` or
    an empty one, is a JSON string.
    """
    if value is None:
        return ""
    if isinstance(value, str) and (plain or (value and value_of(value) is value)):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def value_of(cell: str) -> Any:
    """Return the value of a cell of a field that is not plain: the cell itself if it is not JSON."""
    try:
        return json_value(cell)
    except (ValueError, RecursionError):
        # A text, or what no export has written: the declaration decides whether the field may be a text.
        return cell
