"""What a request leaves behind: one structured line with its metrics, and tracebacks of unexpected errors.

The line is Powertools' structured log with its metrics in the same object, in the embedded metric format, which allows
any other members beside them. A GET costs about as much CPU time as two lines of Powertools' logger and metrics, so the
API writes its own: one line costs a quarter of their two, and CloudWatch stores fewer bytes. A test compares the line
with theirs.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct

from dynashard.errors import (
    InvalidCursorError,
    OutcomeUnknownError,
    OverloadedError,
    UndecodableItemError,
    UnsupportedCursorError,
)
from dynashard.transport.interface import Meter
from dynashard_serving.refusals import expected, one_line
from dynashard_serving.telemetry import metric_names as names
from dynashard_serving.telemetry.log_text import line_text, loggable

if TYPE_CHECKING:
    from dynashard.growth.terms import Report

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
_SERVER_ERROR: Final = 500
_COUNTED: Final[Mapping[str, str]] = {
    OverloadedError.code: names.SHED,
    InvalidCursorError.code: names.CURSOR_ERRORS,
    UnsupportedCursorError.code: names.CURSOR_ERRORS,
}
"""Metrics that are written only for some codes of errors."""
_DIMENSIONS: Final = [[names.ENVIRONMENT, names.SERVICE]]
_LOCATION: Final = "answered"


class Observed(Struct, frozen=True):
    """A request that was answered. Its route is a template such as `/v1/users/{id}`, because paths hold identifiers.

    `items` is how many items a page has; None unless the answer is a page. `item` is the path of the item that the
    request is about, below the version, `revision` what it has after the request, and `caller` the token's subject.
    `described` is what to log of each request of a batch, besides the line of the batch.
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
    item: str | None = None
    revision: str | None = None
    caller: str | None = None
    described: Sequence[Mapping[str, Any]] = ()


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
        from dynashard_serving.telemetry.growth import growth_fields, growth_metric  # noqa: PLC0415 - rare

        self._event("growth", growth_fields(report), WARNING, counted=growth_metric(report))

    def answered(self, observed: Observed) -> None:
        """Log a request with its metrics, and each request of a batch."""
        if self._metrics or (INFO if observed.error is None else ERROR) >= self._level:
            _write(self._lines.line(observed, time.time()))
        for each in observed.described:
            about = {"request_id": observed.request_id, "tenant": observed.tenant, "caller": observed.caller, **each}
            self._event("batch", about, INFO)

    def _event(self, message: str, about: Mapping[str, Any], level: int, counted: str | None = None) -> None:
        if level >= self._level or (counted is not None and self._metrics):
            _write(self._lines.event(message, about, time.time(), level, counted))


class RequestLines:
    """Makes the lines of one function. Threads share it. Cost: 5 us a line."""

    def __init__(self, environment: str, *, metrics: bool, item_keys: bool = True) -> None:
        self._environment = environment
        self._metrics = metrics
        self._item_keys = item_keys
        self._second: tuple[int, str, str] = (-1, "", "")
        self._directives: dict[tuple[str, ...], orjson.Fragment] = {}

    def line(self, observed: Observed, now: float) -> str:
        """Return the line of a request that was answered at `now`, in epoch seconds."""
        level = INFO if observed.error is None else ERROR
        fields = self._members("request", _logged(observed), now, level)
        if self._metrics:
            fields |= self._measured(observed, now)
        return line_text(fields)

    def _measured(self, observed: Observed, now: float) -> dict[str, Any]:
        values = _values(observed)
        directive = self._directives.get(found := tuple(values))
        if directive is None:
            directive = self._directives[found] = _directive(found)
        head = {"Timestamp": int(now * 1000), "CloudWatchMetrics": directive}
        return {"_aws": head, names.ENVIRONMENT: self._environment, **values}

    def event(self, message: str, about: Mapping[str, Any], now: float, level: int, counted: str | None = None) -> str:
        """Return the line of something besides a request; with metrics on, it counts in the metric `counted`.

        That metric has no dimension `service`, so that one alarm covers the events of all functions.
        """
        fields = self._members(message, about, now, level)
        if counted is not None and self._metrics:
            metric = {"Name": counted, "Unit": "Count"}
            found = {"Namespace": names.NAMESPACE, "Dimensions": [[names.ENVIRONMENT]], "Metrics": [metric]}
            head = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [found]}
            fields |= {"_aws": head, names.ENVIRONMENT: self._environment, counted: [1.0]}
        return line_text(fields)

    def _members(self, message: str, about: Mapping[str, Any], now: float, level: int) -> dict[str, Any]:
        fields = {
            "level": _NAMES[level],
            "location": _LOCATION,
            "message": message,
            "timestamp": self._timestamp(now),
            "service": names.API,
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


def _logged(observed: Observed) -> dict[str, Any]:
    consumed = observed.meter.consumed
    return {
        "request_id": observed.request_id,
        "tenant": observed.tenant,
        "method": observed.method,
        "route": observed.route,
        "item": observed.item,
        "revision": observed.revision,
        "caller": observed.caller,
        "status": observed.status,
        "code": observed.code,
        "error": observed.error,
        "milliseconds": round(observed.milliseconds, 1),
        "read_units": consumed.read_units,
        "write_units": consumed.write_units,
        "requests": consumed.requests,
        "throttles": dict(observed.meter.throttles),
        "undecodable": [" ".join(each[:2]) for each in observed.meter.undecodable_items] or None,
    }


def _directive(metrics: tuple[str, ...]) -> orjson.Fragment:
    """Return the metrics' definition as JSON. There are a few dozen sets of metrics."""
    listed = [{"Name": name, "Unit": "Milliseconds" if name == names.LATENCY else "Count"} for name in metrics]
    return orjson.Fragment(orjson.dumps([{"Namespace": names.NAMESPACE, "Dimensions": _DIMENSIONS, "Metrics": listed}]))


def _values(observed: Observed) -> dict[str, list[float]]:
    meter = observed.meter
    values = {
        names.READ_UNITS: [float(meter.consumed.read_units)],
        names.WRITE_UNITS: [float(meter.consumed.write_units)],
        names.LATENCY: [float(observed.milliseconds)],
        # Zeros too, so that their averages are rates.
        names.SERVER_ERRORS: [float(observed.status >= _SERVER_ERROR)],
        names.OUTCOME_UNKNOWN: [float(observed.code == OutcomeUnknownError.code)],
    }
    if (counted := _COUNTED.get(observed.code or "")) is not None:
        values[counted] = [1.0]
    if undecodable := meter.undecodable or observed.code == UndecodableItemError.code:
        values[names.UNDECODABLE] = [float(undecodable)]
    if meter.queries:
        values[names.QUERIES_PER_PAGE] = [float(meter.queries)]
    if observed.items is not None:
        values[names.ITEMS_LISTED] = [float(observed.items)]
        values[names.LISTING_READ_UNITS] = [float(meter.consumed.read_units)]
    for reason, count in meter.throttles.items():
        values[f"{names.THROTTLES_PREFIX}{reason}"] = [float(count)]
    return values


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _traceback(error: Exception) -> dict[str, str]:
    """Return the members of a line with an error's class and traceback, as Powertools' logger calls them."""
    from traceback import format_exception  # noqa: PLC0415 - rare

    return {"exception": "".join(format_exception(error)).rstrip(), "exception_name": type(error).__name__}


def _trace(header: str | None) -> str | None:
    return header.split(";")[0].replace("Root=", "") if header else None
