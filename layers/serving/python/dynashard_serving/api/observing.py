"""What a request leaves behind: one structured line with its metrics, and tracebacks of unexpected errors."""

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynashard_serving.api.log_lines import ERROR, INFO, WARNING
from dynashard_serving.api.request_lines import Observed, RequestLines
from dynashard_serving.refusals import expected, one_line

if TYPE_CHECKING:
    from dynashard.growth.terms import Report

__all__ = ["Observed", "Observer"]


class Observer:
    """Writes logs, and metrics unless nothing reads them. It keeps no data of a request, so threads share it.

    Lines below `level` are hidden, unless they carry metrics.
    """

    def __init__(self, environment: str, *, metrics: bool, item_keys: bool = True, level: int = INFO) -> None:
        self._metrics = metrics
        self._level = level
        self._lines = RequestLines(environment, metrics=metrics, item_keys=item_keys)

    def failed(self, request_id: str, error: Exception) -> None:
        """Log an unexpected error with its traceback."""
        self._event("unexpected error", {"request_id": request_id, **_traceback(error)}, ERROR)

    def growth_failed(self, error: Exception) -> None:
        """Log an error of the growth policy, with its traceback unless it explains itself."""
        known = expected(error)
        about = {"error": one_line(error), **({} if known else _traceback(error))}
        self._event("growth failed", about, WARNING if known else ERROR)

    def grew(self, report: "Report") -> None:
        """Log an event of the growth policy, and count it as `GrowthAsked`, `GrowthLimit` and so on."""
        from dynashard_serving.growth_log import growth_fields, growth_metric  # noqa: PLC0415 - rare

        self._event("growth", growth_fields(report), WARNING, counted=growth_metric(report))

    def answered(self, observed: Observed) -> None:
        """Log a request with its metrics."""
        if self._metrics or (INFO if observed.error is None else ERROR) >= self._level:
            _write(self._lines.line(observed, time.time()))

    def _event(self, message: str, about: Mapping[str, Any], level: int, counted: str | None = None) -> None:
        if level >= self._level or (counted is not None and self._metrics):
            _write(self._lines.event(message, about, time.time(), level, counted))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _traceback(error: Exception) -> dict[str, str]:
    """Return the members of a line with an error's class and traceback, as Powertools' logger calls them."""
    from traceback import format_exception  # noqa: PLC0415 - rare

    return {"exception": "".join(format_exception(error)).rstrip(), "exception_name": type(error).__name__}
