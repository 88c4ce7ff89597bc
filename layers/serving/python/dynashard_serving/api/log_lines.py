"""The lines of the API's log, in the format of Powertools' logger, which the other functions use.

A GET of the API costs about as much CPU time as two lines of Powertools' logger and metrics, so the API writes its own.
A test compares them with Powertools'.
"""

import os
import time
from collections.abc import Mapping
from typing import Any, Final

from dynashard_serving.log_text import loggable
from dynashard_serving.metric_names import API

DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40
CRITICAL: Final = 50
LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": DEBUG,
    "INFO": INFO,
    "WARNING": WARNING,
    "ERROR": ERROR,
    "CRITICAL": CRITICAL,
}
"""Levels as `logging` numbers them; a first GET does without that module."""
_NAMES: Final = {number: name for name, number in LEVELS.items()}
_TRACE: Final = "_X_AMZN_TRACE_ID"


class LogLines:
    """Makes the lines of the API; without `item_keys`, they name neither items nor callers. Threads share it."""

    def __init__(self, *, item_keys: bool) -> None:
        self._item_keys = item_keys
        self._second: tuple[int, str, str] = (-1, "", "")

    def members(self, message: str, about: Mapping[str, Any], now: float, level: int, location: str) -> dict[str, Any]:
        """Return the members of a line. `about` has its own, `now` is in epoch seconds, `location` who wrote it."""
        fields = {
            "level": _NAMES[level],
            "location": location,
            "message": message,
            "timestamp": self._timestamp(now),
            "service": API,
            **about,
            "xray_trace_id": _trace(os.environ.get(_TRACE)),
        }
        return loggable(fields, item_keys=self._item_keys)

    def _timestamp(self, now: float) -> str:
        second = int(now)
        known, start, zone = self._second
        if known != second:
            local = time.localtime(second)
            start, zone = time.strftime("%Y-%m-%d %H:%M:%S", local), time.strftime("%z", local)
            self._second = (second, start, zone)
        return f"{start},{int((now - second) * 1000):03d}{zone}"


def _trace(header: str | None) -> str | None:
    return header.split(";")[0].replace("Root=", "") if header else None
