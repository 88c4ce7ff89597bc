"""What a request leaves behind: one structured line with its metrics, and tracebacks of unexpected errors."""

import sys
import time
from functools import cached_property
from typing import TYPE_CHECKING, Final

from dynashard_serving import metric_names as names
from dynashard_serving.metrics import Figure, metrics_line, write_line
from dynashard_serving.refusals import expected, one_line
from functions.api.request_lines import Observed, RequestLines

if TYPE_CHECKING:
    from aws_lambda_powertools.logging import Logger

    from dynashard.growth.terms import Report

__all__ = ["Observed", "Observer"]

_INFO: Final = 20
_ERROR: Final = 40
"""Levels as `logging` numbers them. It is imported only if a line may be hidden."""


class Observer:
    """Writes logs, and metrics unless nothing reads them. It keeps no data of a request, so threads share it."""

    def __init__(self, environment: str, *, metrics: bool, item_keys: bool = True) -> None:
        self._environment = environment
        self._metrics = metrics
        self._lines = RequestLines(environment, metrics=metrics, item_keys=item_keys)

    @cached_property
    def _logger(self) -> "Logger":
        from aws_lambda_powertools.logging import Logger  # noqa: PLC0415 - only for what is not a request's line

        return Logger(service=names.API)

    def failed(self, request_id: str, error: Exception) -> None:
        """Log an unexpected error with its traceback."""
        self._logger.error("unexpected error", exc_info=error, extra={"request_id": request_id})

    def growth_failed(self, error: Exception) -> None:
        """Log an error of the growth policy, with its traceback unless it explains itself."""
        if expected(error):
            self._logger.warning("growth failed", extra={"error": one_line(error)})
        else:
            self._logger.error("growth failed", exc_info=error)

    def grew(self, report: "Report") -> None:
        """Log an event of the growth policy, and count it as `GrowthAsked`, `GrowthLimit` and so on."""
        from dynashard_serving.growth_log import growth_fields, growth_metric  # noqa: PLC0415 - rare

        self._logger.warning("growth", extra=growth_fields(report))
        if self._metrics:
            # Without the dimension `service`: one alarm covers all functions whose writes are throttled.
            write_line(metrics_line(self._environment, [Figure(growth_metric(report), 1)], time.time()))

    def answered(self, observed: Observed) -> None:
        """Log a request with its metrics. If the log's level hides the line, it is written for the metrics alone."""
        if self._metrics or self._shows(observed):
            write_line(self._lines.line(observed, time.time()))
            sys.stdout.flush()

    def _shows(self, observed: Observed) -> bool:
        return (_INFO if observed.error is None else _ERROR) >= self._level

    @cached_property
    def _level(self) -> int:
        return int(self._logger.log_level)
