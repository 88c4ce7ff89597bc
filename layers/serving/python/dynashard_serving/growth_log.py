"""Events of the growth policy in a function's log: a line, and a metric."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aws_lambda_powertools.logging import Logger

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
    """Writes events of the growth policy into the log of a function. The API writes them itself."""

    def __init__(self, logger: "Logger", environment: str) -> None:
        self._logger = logger
        self._environment = environment

    def grew(self, report: "Report", /) -> None:
        """Log an event and count it."""
        # The API, whose bundle has no Powertools, imports this module for its functions.
        from aws_lambda_powertools.metrics import MetricUnit  # noqa: PLC0415

        from dynashard_serving.metrics import open_metrics  # noqa: PLC0415

        self._logger.warning("growth", extra=growth_fields(report))
        metrics = open_metrics(self._environment)
        metrics.add_metric(growth_metric(report), MetricUnit.Count, 1)
        metrics.flush_metrics()

    def growth_failed(self, error: Exception, /) -> None:
        """Log an error of the policy itself."""
        from dynashard_serving.logs import log_error  # noqa: PLC0415 - as above

        log_error(self._logger, "growth failed", error)
