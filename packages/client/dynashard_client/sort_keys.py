"""Sort keys, as a client needs them to continue a listing without a cursor: rendered from an item's fields."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from string import Formatter
from typing import Any, Protocol


class SortKey(Protocol):
    """The template of a sort key."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields in it."""
        ...

    def render(self, values: Mapping[str, Any], /) -> str:
        """Return the sort key for these values of fields."""
        ...


class SortTemplate:
    """A template such as `{state}#{seq:012d}`, as the backend's declaration has it."""

    def __init__(self, text: str) -> None:
        self._parts = [(literal, name, spec or "") for literal, name, spec, _ in Formatter().parse(text)]
        self.fields = tuple(name for _, name, _ in self._parts if name)

    def render(self, values: Mapping[str, Any], /) -> str:
        """Return the sort key for these values of fields."""
        return "".join(literal + (_text(values[name], spec) if name else "") for literal, name, spec in self._parts)


def _text(value: Any, spec: str) -> str:
    """Return a value as the backend's keys have it: times in UTC with fixed digits."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
        if not spec:
            return f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return format(value, spec)
