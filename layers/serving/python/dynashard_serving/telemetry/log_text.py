"""The text of a line in a function's log: JSON, and nothing in it that the settings keep out of logs."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

_KEYS: Final = ("item", "caller")
"""Members that `logs.item_keys` removes."""


def line_text(members: Mapping[str, Any]) -> str:
    """Return the members of a line as JSON; a value that JSON does not have is written as `str` shows it."""
    try:
        return orjson.dumps(members, default=str).decode()
    except TypeError:
        # An error may quote half a surrogate pair, which the caller sent.
        return orjson.dumps({name: _utf8(value) for name, value in members.items()}, default=str).decode()


def loggable(members: Mapping[str, Any], *, item_keys: bool) -> dict[str, Any]:
    """Return the members that have a value; without `item_keys`, none that names an item or a caller."""
    hidden = () if item_keys else _KEYS
    return {name: value for name, value in members.items() if value is not None and name not in hidden}


def _utf8(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
