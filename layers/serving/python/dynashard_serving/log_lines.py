"""The structured line that a function leaves in its log for each request, write and record.

All functions make them here, so that one query follows a request or an item through all logs: `request_id` is the
API's, `item` is an item's path such as `users/ada`, and `revision` is what was written. Powertools' logger writes the
same members, and costs fifteen times as much.
"""

import os
import time
from collections.abc import Mapping
from typing import Any, Final

import orjson

from dynashard_serving import metric_names as names

API: Final = names.API
COMMANDS: Final = "dynashard-commands"
WRITER: Final = "dynashard-writer"
CHANGES: Final = "dynashard-changes"
"""Services, which distinguish the lines."""
_KEYS: Final = ("item", "caller")
"""Members that `logs.item_keys` removes."""
_TRACE: Final = "_X_AMZN_TRACE_ID"


class LogLines:
    """Makes the lines of one function; without `item_keys`, they name neither items nor callers. Threads share it."""

    def __init__(self, service: str, *, item_keys: bool) -> None:
        self.item_keys = item_keys
        self._service = service
        self._second: tuple[int, str, str] = (-1, "", "")

    def line(self, message: str, about: Mapping[str, Any], now: float) -> str:
        """Return a line. `about` has its members, of which None is left out; `now` is in epoch seconds."""
        return line_text(self.members(message, about, now))

    def members(
        self, message: str, about: Mapping[str, Any], now: float, location: str | None = None
    ) -> dict[str, Any]:
        """Return the members of a line, for a caller that adds its own. `location` is where it was written."""
        fields = {
            "level": "INFO" if about.get("error") is None else "ERROR",
            "location": location,
            "message": message,
            "timestamp": self._timestamp(now),
            "service": self._service,
            **about,
            "xray_trace_id": _trace(os.environ.get(_TRACE)),
        }
        if not self.item_keys:
            for name in _KEYS:
                fields.pop(name, None)
        return {name: value for name, value in fields.items() if value is not None}

    def _timestamp(self, now: float) -> str:
        second = int(now)
        known, start, zone = self._second
        if known != second:
            local = time.localtime(second)
            start, zone = time.strftime("%Y-%m-%d %H:%M:%S", local), time.strftime("%z", local)
            self._second = (second, start, zone)
        return f"{start},{int((now - second) * 1000):03d}{zone}"


def line_text(members: Mapping[str, Any]) -> str:
    """Return the members of a line as JSON."""
    try:
        return orjson.dumps(members).decode()
    except TypeError:
        # An error may quote half a surrogate pair, which the caller sent.
        return orjson.dumps({name: _utf8(value) for name, value in members.items()}).decode()


def _utf8(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _trace(header: str | None) -> str | None:
    return header.split(";")[0].replace("Root=", "") if header else None
