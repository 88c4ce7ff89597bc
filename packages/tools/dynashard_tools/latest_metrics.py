"""The newest values of CloudWatch's metrics."""

import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dynashard.errors import EngineUnavailableError
from dynashard_serving.aws_services import metric_data
from dynashard_tools.environments import Environment
from dynashard_tools.failure import CommandError

MINUTES: Final = 15
"""How far back a value may be."""


class MetricsUnreadError(CommandError):
    """CloudWatch does not answer, or does not allow to read its metrics."""


class Metric(NamedTuple):
    """A metric of an AWS service."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


def latest(environment: Environment, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Return the newest maxima of a minute, by the names of the metrics; those without a value are left out.

    Raises:
        MetricsUnreadError: CloudWatch does not answer.

    Cost: 1 GetMetricData.
    """
    now = time.time()
    names = {f"m{number}": name for number, name in enumerate(metrics)}
    try:
        results = metric_data(
            lambda: environment.client("cloudwatch"),
            StartTime=now - 60 * MINUTES,
            EndTime=now,
            ScanBy="TimestampDescending",
            MetricDataQueries=[{"Id": at, "MetricStat": _statistic(metrics[name])} for at, name in names.items()],
        )
    except EngineUnavailableError as error:
        raise MetricsUnreadError(str(error)) from error
    return {names[each["Id"]]: float(each["Values"][0]) for each in results if each["Values"]}


def _statistic(metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    described = {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}
    return {"Metric": described, "Period": 60, "Stat": "Maximum"}
