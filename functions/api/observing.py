"""What a request leaves behind: one structured log line, one EMF record of metrics."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from dynashard.errors import InvalidCursorError, OutcomeUnknownError, OverloadedError
from dynashard.transport.interface import Meter
from dynashard_serving import metric_names as names
from dynashard_serving.growth_log import growth_fields, growth_metric
from dynashard_serving.metrics import Figure, metrics_line, write_line
from dynashard_serving.refusals import expected, one_line

if TYPE_CHECKING:
    from dynashard_serving.growth_terms import Report

_SERVER_ERROR = 500
_COUNTED = {OverloadedError.code: names.SHED, InvalidCursorError.code: names.CURSOR_ERRORS}
"""Metrics that are written only for some codes of errors."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A request that was answered. Its route is a template such as `/v1/users/{id}`, because paths hold identifiers.

    `items` is how many items a page has; None unless the answer is a page.
    """

    request_id: str
    method: str
    route: str
    status: int
    tenant: str | None
    milliseconds: float
    meter: Meter
    code: str | None = None
    error: str | None = None
    items: int | None = None


class Observer:
    """Writes logs, and metrics unless nothing reads them. It keeps no data of a request, so threads share it."""

    def __init__(self, environment: str, *, metrics: bool) -> None:
        self._environment = environment
        self._metrics = metrics
        self._logger = Logger(service=names.API)

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
        self._logger.warning("growth", extra=growth_fields(report))
        if self._metrics:
            # Without the dimension `service`: one alarm covers all functions whose writes are throttled.
            write_line(metrics_line(self._environment, [Figure(growth_metric(report), 1)], time.time()))

    def answered(self, observed: Observed) -> None:
        """Log a request and write its metrics."""
        meter = observed.meter
        write = self._logger.info if observed.error is None else self._logger.error
        write(
            "request",
            extra={
                "request_id": observed.request_id,
                "tenant": observed.tenant,
                "method": observed.method,
                "route": observed.route,
                "status": observed.status,
                "code": observed.code,
                **({} if observed.error is None else {"error": observed.error}),
                "milliseconds": round(observed.milliseconds, 1),
                "read_units": meter.consumed.read_units,
                "write_units": meter.consumed.write_units,
                "requests": meter.consumed.requests,
                "throttles": dict(meter.throttles),
            },
        )
        if self._metrics:
            self._emit(observed)

    def _emit(self, observed: Observed) -> None:
        metrics = self._record()
        for name, unit, value in _figures(observed):
            metrics.add_metric(name=name, unit=unit, value=value)
        for name, value in _context(observed).items():
            metrics.add_metadata(key=name, value=value)
        metrics.flush_metrics()

    def _record(self) -> EphemeralMetrics:
        metrics = EphemeralMetrics(namespace=names.NAMESPACE, service=names.API)
        metrics.add_dimension(names.ENVIRONMENT, self._environment)
        return metrics


def _figures(observed: Observed) -> list[tuple[str, MetricUnit, float]]:
    meter = observed.meter
    figures: list[tuple[str, MetricUnit, float]] = [
        (names.READ_UNITS, MetricUnit.Count, meter.consumed.read_units),
        (names.WRITE_UNITS, MetricUnit.Count, meter.consumed.write_units),
        (names.LATENCY, MetricUnit.Milliseconds, observed.milliseconds),
        # Zeros too, so that their averages are rates.
        (names.SERVER_ERRORS, MetricUnit.Count, int(observed.status >= _SERVER_ERROR)),
        (names.OUTCOME_UNKNOWN, MetricUnit.Count, int(observed.code == OutcomeUnknownError.code)),
    ]
    if observed.code in _COUNTED:
        figures.append((_COUNTED[observed.code], MetricUnit.Count, 1))
    if meter.queries:
        figures.append((names.QUERIES_PER_PAGE, MetricUnit.Count, meter.queries))
    if observed.items is not None:
        figures.append((names.ITEMS_LISTED, MetricUnit.Count, observed.items))
        figures.append((names.LISTING_READ_UNITS, MetricUnit.Count, meter.consumed.read_units))
    throttles = meter.throttles.items()
    figures += [(f"{names.THROTTLES_PREFIX}{reason}", MetricUnit.Count, count) for reason, count in throttles]
    return figures


def _context(observed: Observed) -> dict[str, Any]:
    return {
        "request_id": observed.request_id,
        "tenant": observed.tenant,
        "route": f"{observed.method} {observed.route}",
        "status": observed.status,
    }
