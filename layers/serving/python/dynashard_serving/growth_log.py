"""What becomes of the growth policy's news: a line of the log, and a metric."""

import json
import time
from collections.abc import Callable
from logging import Logger
from typing import TYPE_CHECKING, Any

from dynashard_serving.logs import log_error
from dynashard_serving.metrics import Figure, metrics_line, tell

if TYPE_CHECKING:
    from dynashard_serving.growth_terms import Report


def growth_metric(report: "Report") -> str:
    """The metric that counts news of this kind: `GrowthAsked`, `GrowthLimit` and so on."""
    return f"Growth{report.news.value.title().replace('_', '')}"


def growth_fields(report: "Report") -> dict[str, Any]:
    """What the log tells of news."""
    return {
        "news": report.news.value,
        "entity": report.entity,
        "partition": report.partition,
        "index": report.index,
        "target": report.target,
        "told": report.told,
    }


class GrowthLog:
    """A witness of growth that writes into a function's log.

    Args:
        logger: takes the news.
        environment: the dimension of the metrics.
        write: takes a line of metrics.
        clock: wall clock, in epoch seconds.
    """

    def __init__(
        self,
        logger: Logger,
        environment: str,
        *,
        write: Callable[[str], object] = tell,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._logger = logger
        self._environment = environment
        self._write = write
        self._clock = clock

    def grew(self, report: "Report", /) -> None:
        """The policy has news."""
        self._logger.warning(json.dumps({"event": "growth", **growth_fields(report)}))
        self._write(metrics_line(self._environment, [Figure(growth_metric(report), 1)], self._clock()))

    def growth_failed(self, error: Exception, /) -> None:
        """The policy has failed; what was throttled is told of all the same."""
        log_error(self._logger, "growth failed", error)
