"""Metrics as CloudWatch stores them: the values of each minute, and their statistics over a period."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

MINUTE: Final = 60
LATE_SECONDS: Final = 120
"""How late data are: those of the newest minutes are not there yet."""

Metric = tuple[str, str, frozenset[str]]
"""Namespace, name, and values of the dimensions."""
Values: TypeAlias = dict[Metric, dict[int, list[float]]]
"""The values of each minute since the epoch."""


@dataclass
class CloudWatch:
    """Stores metrics, and answers GetMetricData as far as the functions use it.

    Attributes:
        now: epoch seconds.
    """

    now: float = 0.0
    _values: Values = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def write(self, namespace: str, name: str, of: Iterable[str], at: float, *values: float) -> None:
        """Store values of one moment. `of` are the values of the dimensions."""
        self._values[namespace, name, frozenset(of)][int(at // MINUTE)].extend(values)

    def log(self, line: str) -> None:
        """Store the metrics that a line of a log embeds."""
        document = json.loads(line)
        for directive in document.get("_aws", {}).get("CloudWatchMetrics", []):
            for dimensions in directive["Dimensions"]:
                of, at = [document[each] for each in dimensions], document["_aws"]["Timestamp"] / 1000
                for metric in directive["Metrics"]:
                    value = document[metric["Name"]]
                    values = value if isinstance(value, list) else [value]
                    self.write(directive["Namespace"], metric["Name"], of, at, *values)

    def has(self, metric: Metric) -> bool:
        return metric in self._values

    def values(self, metric: Metric, start: float, end: float) -> list[float]:
        """The values of a period that have arrived."""
        minutes = self._values.get(metric, {})
        end = min(end, self.now - LATE_SECONDS)
        wanted = range(int(start // MINUTE), math.ceil(end / MINUTE))
        return [value for minute in wanted for value in minutes.get(minute, ())]

    def statistic(self, metric: Metric, name: str, start: float, end: float) -> float | None:
        """A statistic of a period; None if it has no data."""
        values = self.values(metric, start, end)
        return statistic(name, values) if values else None

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        """As CloudWatch: the periods that have data, newest first."""
        start, end = request["StartTime"].timestamp(), request["EndTime"].timestamp()
        return {"MetricDataResults": [self._result(query, start, end) for query in request["MetricDataQueries"]]}

    def _result(self, query: Mapping[str, Any], start: float, end: float) -> dict[str, Any]:
        stat = query["MetricStat"]
        metric, period = metric_of(stat["Metric"]), stat["Period"]
        ends = min(end, self.now - LATE_SECONDS)
        stored = [minute * MINUTE for minute in self._values.get(metric, ()) if start <= minute * MINUTE < ends]
        times = sorted({at // period * period for at in stored})
        found = [(at, statistic(stat["Stat"], self.values(metric, at, at + period))) for at in times]
        return {
            "Id": query["Id"],
            "StatusCode": "Complete",
            "Timestamps": [datetime.fromtimestamp(at, UTC) for at, _ in reversed(found)],
            "Values": [value for _, value in reversed(found)],
        }


def metric_of(described: Mapping[str, Any]) -> Metric:
    """The metric of a request, or of an alarm whose dimensions are text."""
    of = frozenset(str(each["Value"]) for each in described.get("Dimensions", []))
    return described["Namespace"], described["MetricName"], of


def statistic(name: str, values: Sequence[float]) -> float:
    """A statistic of values, of which there is at least one."""
    if name.startswith("p"):
        ordered = sorted(values)
        return ordered[max(0, math.ceil(float(name[1:]) / 100 * len(ordered)) - 1)]
    return STATISTICS[name](values)


STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: sum(values) / len(values),
    "SampleCount": len,
}


def minutes(start: float, end: float) -> Iterator[float]:
    """The minutes from a time to another."""
    yield from (start + MINUTE * n for n in range(int((end - start) // MINUTE)))
