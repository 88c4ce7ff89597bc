"""The metrics that our functions write, collected from their own code."""

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from typing import Any, Final

from dynashard.errors import InvalidCursorError, OutcomeUnknownError, OverloadedError, UndecodableItemError
from dynashard.growth.terms import GrowthEvent, Report
from dynashard.transport.interface import Consumed, Meter
from dynashard_patterns.changes import Outcome
from dynashard_serving.api.request_log import Observed, Observer
from dynashard_serving.changes import handler as changes
from dynashard_serving.commands import handler as commands
from dynashard_serving.reshard import handler as reshard
from dynashard_serving.reshard.stream_age import StreamAge
from dynashard_serving.reshard.watch import Seen
from dynashard_serving.settings import TableSettings
from dynashard_serving.telemetry.metric_names import NAMESPACE
from dynashard_serving.telemetry.powertools import GrowthLog, open_logger
from dynashard_serving.writer import metrics as writer
from dynashard_serving.writer.outcomes import Tally

DYNASHARD: Final = NAMESPACE


class Still(StreamAge):
    """A stream in which nothing waits."""

    def __init__(self) -> None:
        pass

    def seconds(self) -> float:
        return 0.0


def emitted() -> set[tuple[str, frozenset[str]]]:
    """Return names and dimensions of all metrics, as CloudWatch would read them from the functions' logs."""
    return {found for line in lines() for found in _metrics_in(json.loads(line))}


def lines() -> Iterator[str]:
    """Yield lines of logs: of requests of each kind, a batch of changes, accepted writes, the watch, and growth."""
    yield from requests()
    records = [{"dynamodb": {"ApproximateCreationDateTime": 1.0}}]
    with redirect_stdout(StringIO()) as written:
        changes.write_metrics("dev", Outcome(None, 1, 0), records, 2.0)
        writer.write_metrics("dev", Tally(stored=1, lags=[0.5]))
        reshard.write_metrics("dev", Seen(running=1, percent=50.0))
        reshard.measure_stream(Still(), "dev")
        for code in commands.COUNTED:
            commands.write_metrics("dev", {"ok": False, "error": {"code": code}})
    yield from written.getvalue().splitlines()
    yield from growth()


def requests() -> list[str]:
    """Return the lines of the API for requests that succeed, list, and fail in each way."""
    meter = Meter()
    meter.record("Query", Consumed(read_units=2.5, requests=1))
    meter.throttled("TableWriteKeyRangeThroughputExceeded")
    codes = (
        None, OverloadedError.code, InvalidCursorError.code, OutcomeUnknownError.code, UndecodableItemError.code
    )  # fmt: skip
    with redirect_stdout(StringIO()) as written:
        observer = Observer("dev", metrics=True)
        for code in codes:
            status = 200 if code is None else 503
            observer.answered(
                Observed("r-1", "GET", "/v1/users", status, "abc", 12.5, meter, code=code, error=code, items=40)
            )
    return [line for line in written.getvalue().splitlines() if line.startswith("{")]


def growth() -> list[str]:
    """Return the lines of metrics of all events of the growth policy."""
    with redirect_stdout(StringIO()) as written:
        log = GrowthLog(open_logger("emitted"), TableSettings(table="t", topology_table="u"))
        for event in GrowthEvent:
            log.grew(Report(event, "user.v1.User", "user.v1.User:abc", None, "16 to 32", 32))
    return [line for line in written.getvalue().splitlines() if "_aws" in line]


def _metrics_in(line: dict[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
        assert directive["Namespace"] == NAMESPACE
        for metric in directive["Metrics"]:
            for dimensions in directive["Dimensions"]:
                yield metric["Name"], frozenset(dimensions)
