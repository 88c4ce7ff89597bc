"""Evaluates synthesised alarms over recorded metrics, by the rules in CloudWatch's user guide.

The pages are "Alarm evaluation", "Configuring how CloudWatch alarms treat missing data", "Percentile-based alarms and
low data samples" and "Using math expressions"; for metrics of DynamoDB also PutMetricAlarm in the API reference. What
an alarm uses beyond that raises, so that an alarm that CloudWatch would judge differently cannot pass.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from tests.infra.cloudwatch_metrics import CloudWatch, Metric
from tests.infra.templates import short

EXTRA_PERIODS: Final = 2
"""CloudWatch looks at more periods than it needs, in case some have no data. The guide's examples have two more."""
KNOWN: Final = {
    "ActionsEnabled", "AlarmActions", "AlarmDescription", "AlarmName", "ComparisonOperator", "DatapointsToAlarm",
    "Dimensions", "EvaluateLowSampleCountPercentile", "EvaluationPeriods", "ExtendedStatistic", "MetricName", "Metrics",
    "Namespace", "OKActions", "Period", "Statistic", "Tags", "Threshold", "TreatMissingData",
}  # fmt: skip

State = Literal["OK", "ALARM"]
Points = list[float | None]
"""A value for each period, the oldest first; None if there are no data."""
_OF_RESOURCE: Final = re.compile(r"<(?:ExportsOutput(?:FnGetAtt|Ref))?([A-Za-z]+?)[0-9A-F]{8}")


def resource(value: Any) -> str:
    """The logical id of the resource that a dimension names, without CDK's hash; text stays as it is."""
    text = short(value)
    found = _OF_RESOURCE.search(text)
    return found[1] if found else text


@dataclass(frozen=True)
class MetricStat:
    """A metric with its statistic and period."""

    metric: Metric
    statistic: str
    period: int

    def points(self, cloud: CloudWatch, count: int) -> Points:
        ends = [cloud.now - n * self.period for n in reversed(range(count))]
        return [cloud.statistic(self.metric, self.statistic, end - self.period, end) for end in ends]


@dataclass(frozen=True)
class Alarm:
    """An alarm of a template."""

    properties: Mapping[str, Any]

    def __post_init__(self) -> None:
        assert self.properties.keys() <= KNOWN, self.properties.keys() - KNOWN
        assert self.properties["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"

    @cached_property
    def metrics(self) -> dict[str, MetricStat]:
        """Its metrics by their names in its expression; one without a name if it has no expression."""
        queries = self.properties.get("Metrics")
        if queries is None:
            stat = self.properties.get("Statistic") or self.properties["ExtendedStatistic"]
            return {"": _stat(self.properties, stat, self.properties["Period"])}
        return {
            each["Id"]: _stat(each["MetricStat"]["Metric"], each["MetricStat"]["Stat"], each["MetricStat"]["Period"])
            for each in queries
            if "MetricStat" in each
        }

    @cached_property
    def expression(self) -> str | None:
        found = [each["Expression"] for each in self.properties.get("Metrics", []) if "Expression" in each]
        assert len(found) == len([each for each in self.properties.get("Metrics", []) if each.get("ReturnData", True)])
        return found[0] if found else None

    def state(self, cloud: CloudWatch, before: State) -> State:
        """The state at the present moment."""
        periods = self.properties["EvaluationPeriods"]
        if self._too_few_samples(cloud, periods):
            return before
        points = self._points(cloud, periods + EXTRA_PERIODS)
        breaching = [None if point is None else point >= self.properties["Threshold"] for point in points]
        needed = self.properties.get("DatapointsToAlarm", periods)
        return judged(breaching, periods, needed, self._missing, before)

    @property
    def _missing(self) -> str:
        # "Alarms that evaluate metrics in the AWS/DynamoDB namespace always ignore missing data."
        of_dynamodb = any(each.metric[0] == "AWS/DynamoDB" for each in self.metrics.values())
        return "ignore" if of_dynamodb else self.properties["TreatMissingData"]

    def _points(self, cloud: CloudWatch, count: int) -> Points:
        series = {name: each.points(cloud, count) for name, each in self.metrics.items()}
        return series[""] if self.expression is None else computed(self.expression, series)

    def _too_few_samples(self, cloud: CloudWatch, periods: int) -> bool:
        if self.properties.get("EvaluateLowSampleCountPercentile") != "ignore":
            return False
        (stat,) = self.metrics.values()
        share = float(self.properties["ExtendedStatistic"][1:]) / 100
        start = cloud.now - periods * stat.period
        return len(cloud.values(stat.metric, start, cloud.now)) < round(10 / (1 - share))


def judged(breaching: Sequence[bool | None], periods: int, needed: int, missing: str, before: State) -> State:
    """The state after points of which some are missing.

    Args:
        breaching: of the evaluation range, the oldest first.
        periods, needed: N and M of "M out of N".
        missing: `TreatMissingData`.
        before: the state before.
    """
    real = [point for point in breaching if point is not None]
    filled = max(0, periods - len(real))
    if filled == 0:
        real = real[-periods:]
    bad = sum(real)
    if missing == "ignore":
        if filled and all(real) and bad < needed:
            return before
    elif missing == "breaching":
        bad += filled
    else:
        assert missing == "notBreaching"
    return "ALARM" if bad >= needed else "OK"


def computed(expression: str, series: Mapping[str, Points]) -> Points:
    """The values of an expression of metric math."""
    tree = ast.parse(re.sub(r"\bAND\b", "and", expression), mode="eval").body
    return _value(tree, series, max(len(points) for points in series.values()))


def _value(node: ast.expr, series: Mapping[str, Points], length: int) -> Points:
    def of(inner: ast.expr) -> Points:
        return _value(inner, series, length)

    if isinstance(node, ast.Constant):
        return [float(node.value)] * length  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return series[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id](*(of(each) for each in node.args))
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return _each(lambda *some: float(all(some)), *(of(each) for each in node.values))
    if isinstance(node, ast.BinOp):
        return _each(OPERATORS[type(node.op)], of(node.left), of(node.right))
    assert isinstance(node, ast.Compare), ast.dump(node)
    return _each(OPERATORS[type(node.ops[0])], of(node.left), of(node.comparators[0]))


def _each(function: Callable[..., float], *several: Points) -> Points:
    """Apply a function to each period; a period in which something is missing is missing."""
    return [None if None in some else function(*some) for some in zip(*several, strict=True)]


def _fill(points: Points, value: Points) -> Points:
    return [other if point is None else point for point, other in zip(points, value, strict=True)]


def _if(condition: Points, then: Points, otherwise: Points) -> Points:
    return [None if test is None else a if test else b for test, a, b in zip(condition, then, otherwise, strict=True)]


def _diff(points: Points) -> Points:
    """The difference to the value before, of values that are there."""
    found: Points = []
    before = None
    for point in points:
        found.append(None if point is None or before is None else point - before)
        before = before if point is None else point
    return found


FUNCTIONS: Final[Mapping[str, Callable[..., Points]]] = {"FILL": _fill, "IF": _if, "DIFF": _diff}
OPERATORS: Final[Mapping[type[ast.AST], Callable[[float, float], float]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Div: lambda a, b: a / b,
    ast.Eq: lambda a, b: float(a == b),
    ast.Gt: lambda a, b: float(a > b),
    ast.GtE: lambda a, b: float(a >= b),
    ast.Lt: lambda a, b: float(a < b),
}


def _stat(described: Mapping[str, Any], statistic: str, period: int) -> MetricStat:
    of = frozenset(resource(each["Value"]) for each in described.get("Dimensions", []))
    return MetricStat((described["Namespace"], described["MetricName"], of), statistic, period)


@dataclass(frozen=True)
class Change:
    """A change of an alarm's state: its name, when, and the state since."""

    at: float
    name: str
    state: State


def watch(alarms: Mapping[str, Alarm], cloud: CloudWatch, start: float, end: float, every: float = 300) -> list[Change]:
    """Evaluate alarms from a time to another, each of them OK at first, and return the changes of their states.

    CloudWatch evaluates once a minute, over the periods that end at that minute; here it is every few minutes. An alarm
    none of whose metrics has data is evaluated at the end only.
    """
    states: dict[str, State] = dict.fromkeys(alarms, "OK")
    changes = []
    at = start
    while at <= end:
        cloud.now = at
        for name, alarm in alarms.items():
            if at + every <= end and not any(cloud.has(each.metric) for each in alarm.metrics.values()):
                continue
            state = alarm.state(cloud, states[name])
            if state != states[name]:
                states[name] = state
                changes.append(Change(at, name, state))
        at += every
    return changes


def rung(changes: Sequence[Change]) -> set[str]:
    """The alarms that rang."""
    return {change.name for change in changes if change.state == "ALARM"}
