"""Whether a table as a whole is below its limits. If it was throttled all the same, one key range is hot.

CloudWatch counts throttles by cause, and knows what was consumed and provisioned.
Source of the comparison: AWS, 'Choosing the right number of shards'.

The AWS SDK is not imported before the first question.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from dynashard.errors import DynashardError
from dynashard.growth.settings import ON_DEMAND_LIMIT, Load
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Transport
from dynashard_serving.aws_services import client, metric_data

_MINUTES: Final = 10
"""How far back to look: CloudWatch is late by a minute or two, and reports what is provisioned every five."""
_CLEARLY_BELOW: Final = 0.8
"""A minute's average hides its busiest seconds."""
_LIMITS: Final = ("ProvisionedThroughput", "MaxOnDemandThroughput", "AccountLimit")

_Series = Mapping[str, Mapping[datetime, float]]
"""Values by minute, by the id of their metric."""


class TableLoad:
    """Asks CloudWatch about one table. Safe to share between threads.

    Args:
        transport: the wire to the table, for its settings.
        table: its name.
        metrics: builds botocore's CloudWatch client; called once, when first needed.
        clock: wall clock, in epoch seconds.
    """

    def __init__(
        self, transport: Transport, table: str, *, metrics: Callable[[], Any], clock: Callable[[], float] = time.time
    ) -> None:
        self._transport = transport
        self._table = table
        self._build = metrics
        self._clock = clock
        self._client: Any = None
        self._lock = own_lock(self)

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        """How busy the table, or one of its indexes, was in the last minutes in which it was throttled.

        Args:
            index: the slot of the index, such as `GSI1`; None for the table.
            writing: about write units; about read units if False.

        Returns:
            The load. Whatever goes wrong, it is an unknown one.

        Cost: 1 round trip to CloudWatch for 7 metrics, which AWS bills, and 1 DescribeTable unless CloudWatch knows
            what is provisioned.
        """
        does = "Write" if writing else "Read"
        names = {
            "consumed": f"Consumed{does}CapacityUnits",
            "provisioned": f"Provisioned{does}CapacityUnits",
            "throttled": f"{does}ThrottleEvents",
            "KeyRangeThroughput": f"{does}KeyRangeThroughputThrottleEvents",
            **{limit: f"{does}{limit}ThrottleEvents" for limit in _LIMITS},
        }
        try:
            series = self._metrics(names, index, seconds=_MINUTES * 60, period=60)
            return _by_cause(series) or self._by_consumption(series, index, does)
        except DynashardError as error:
            return Load(
                None,
                f"the load of {self._table} is not known ({error}): allow cloudwatch:GetMetricData and "
                "dynamodb:DescribeTable",
            )

    def limit(self, *, index: str | None = None, writing: bool = True) -> float | None:
        """What the table, or one of its indexes, can give now, in units a second.

        That is what is provisioned; on demand, the least of the configured maximum and the warm throughput, which
        DynamoDB raises as traffic grows.

        Returns:
            None if there is no such index, or the table cannot be described.

        Cost: 1 DescribeTable.
        """
        try:
            return self._described(index, "Write" if writing else "Read")
        except DynashardError:
            return None

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        """Whether neither reads nor writes of the table, or of one of its indexes, were throttled of late.

        Args:
            seconds: for how long; whole hours are looked at.
            index: the slot of the index; None for the table.

        Returns:
            None if CloudWatch does not answer.

        Cost: 1 round trip to CloudWatch for 2 metrics, which AWS bills.
        """
        names = {does: f"{does}ThrottleEvents" for does in ("Read", "Write")}
        try:
            series = self._metrics(names, index, seconds=seconds, period=3600)
        except DynashardError:
            return None
        return not any(count for counts in series.values() for count in counts.values())

    def _metrics(self, names: Mapping[str, str], index: str | None, *, seconds: float, period: int) -> _Series:
        """Metrics of the last seconds, and of the whole periods that these begin in, by their keys in `names`."""
        dimensions = [{"Name": "TableName", "Value": self._table}]
        if index is not None:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
        now = self._clock()
        start = now - seconds
        results = metric_data(
            self._cloudwatch,
            StartTime=datetime.fromtimestamp(start - start % period, UTC),
            EndTime=datetime.fromtimestamp(now, UTC),
            MetricDataQueries=[
                {
                    "Id": f"m{at}",
                    "MetricStat": {
                        "Metric": {"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": dimensions},
                        "Period": period,
                        "Stat": "Minimum" if name.startswith("Provisioned") else "Sum",
                    },
                }
                for at, name in enumerate(names.values())
            ],
        )
        keys = list(names)
        return {
            keys[int(each["Id"][1:])]: dict(zip(each["Timestamps"], each["Values"], strict=True)) for each in results
        }

    def _by_consumption(self, series: _Series, index: str | None, does: str) -> Load:
        consumed = series.get("consumed", {})
        throttled = [minute for minute, count in series.get("throttled", {}).items() if count > 0]
        rates = [consumed[minute] / 60 for minute in throttled if minute in consumed]
        if not rates:
            return Load(None, "CloudWatch has not counted the throttle yet")
        provisioned = series.get("provisioned", {})
        limit = min(provisioned.values()) if provisioned else self._described(index, does)
        if limit is None:
            return Load(None, f"{self._table} has no index {index}")
        reason = f"{max(rates):,.0f} of {limit:,.0f} {does.lower()} units a second in the busiest throttled minute"
        return Load(max(rates) < limit * _CLEARLY_BELOW, reason)

    def _described(self, index: str | None, does: str) -> float | None:
        """The limit by the table's settings, in units a second; None if there is no such index."""
        described = self._transport.call("DescribeTable", {"TableName": self._table})["Table"]
        if index is not None:
            indexes = {each["IndexName"]: each for each in described.get("GlobalSecondaryIndexes") or ()}
            if index not in indexes:
                return None
            described = indexes[index]
        provisioned = (described.get("ProvisionedThroughput") or {}).get(f"{does}CapacityUnits", 0)
        if provisioned > 0:
            return float(provisioned)
        # A maximum of -1 is none. Beyond its warm throughput an on-demand table may have to grow first. With a higher
        # quota of the account, that can be above the default quota.
        maximum = (described.get("OnDemandThroughput") or {}).get(f"Max{does}RequestUnits", -1)
        warm = (described.get("WarmThroughput") or {}).get(f"{does}UnitsPerSecond") or ON_DEMAND_LIMIT
        return float(min(limit for limit in (maximum, warm) if limit > 0))

    def _cloudwatch(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._build()
            return self._client


def table_load(
    transport: Transport,
    table: str,
    *,
    clock: Callable[[], float] = time.time,
    **options: Any,
) -> TableLoad:
    """What asks CloudWatch about the load of a table; see `TableLoad`.

    Cost: nothing until it is asked.
    """
    return TableLoad(transport, table, metrics=partial(client, "cloudwatch", **options), clock=clock)


def _by_cause(series: _Series) -> Load | None:
    """What CloudWatch's counts by cause say; None if there are none."""
    counts = {cause: sum(series.get(cause, {}).values()) for cause in ("KeyRangeThroughput", *_LIMITS)}
    for cause, count in counts.items():
        if count > 0:
            return Load(cause == "KeyRangeThroughput", f"CloudWatch counts {count:.0f} throttles by {cause}")
    return None
