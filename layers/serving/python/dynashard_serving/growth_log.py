"""Events of the growth policy in a function's log: a line, and a metric."""

import json
import time
from collections.abc import Callable
from logging import Logger
from typing import TYPE_CHECKING, Any

from dynashard_serving.logs import log_error
from dynashard_serving.metrics import Figure, metrics_line, write_line

if TYPE_CHECKING:
    from dynashard.growth.terms import Report


def growth_metric(report: "Report") -> str:
    """Return the metric that counts events of this kind: `GrowthAsked`, `GrowthLimit` and so on."""
    return f"Growth{report.event.value.title().replace('_', '')}"


def growth_fields(report: "Report") -> dict[str, Any]:
    """Return the fields of an event's line in the log."""
    return {
        "outcome": report.event.value,
        "entity": report.entity,
        "partition": report.partition,
        "index": report.index,
        "target": report.target,
        "reason": report.reason,
    }


class GrowthLog:
    """Writes events of the growth policy into a function's log."""

    def __init__(
        self,
        logger: Logger,
        environment: str,
        *,
        write: Callable[[str], object] = write_line,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._logger = logger
        self._environment = environment
        self._write = write
        self._clock = clock

    def grew(self, report: "Report", /) -> None:
        """Log an event and count it."""
        self._logger.warning(json.dumps({"event": "growth", **growth_fields(report)}))
        self._write(metrics_line(self._environment, [Figure(growth_metric(report), 1)], self._clock()))

    def growth_failed(self, error: Exception, /) -> None:
        """Log an error of the policy itself."""
        log_error(self._logger, "growth failed", error)
