"""Metrics of one environment: those that AWS writes about its resources, and those that our functions write."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb

from dynashard_cdk.settings import Settings
from dynashard_serving.telemetry import metric_names as names

WAYS: Final = ("Read", "Write")
FIVE_MINUTES: Final = Duration.minutes(5)
MINUTE: Final = Duration.minutes(1)


@dataclass(frozen=True)
class Metrics:
    """Makes metrics of one environment."""

    settings: Settings
    table: dynamodb.ITableV2

    def own(self, name: str, statistic: str, period: Duration = FIVE_MINUTES) -> cloudwatch.Metric:
        """A metric of a function, from `metric_names`, with the environment as its only dimension."""
        return self._own(name, statistic, period, {})

    def of_requests(self, name: str, statistic: str, period: Duration = FIVE_MINUTES) -> cloudwatch.Metric:
        """A metric of requests to the API, from `metric_names`."""
        return self._own(name, statistic, period, {names.SERVICE: names.API})

    def throttles(
        self, way: str, cause: str, slot: str | None = None, period: Duration = FIVE_MINUTES
    ) -> cloudwatch.Metric:
        """Throttled reads or writes of the table, or of an index, for one cause such as `KeyRangeThroughput`."""
        return self.dynamodb(f"{way}{cause}ThrottleEvents", "Sum", slot, period)

    def events(
        self, name: str, table: dynamodb.ITableV2, slot: str | None = None, period: Duration = MINUTE
    ) -> cloudwatch.MathExpression:
        """A metric of DynamoDB that counts events of a table or index, 0 where it has no data, for an alarm.

        DynamoDB writes such a metric only above 0, and CloudWatch documents that alarms on metrics of DynamoDB
        keep their state while data are missing, whatever `TreatMissingData` says: such an alarm would never end, and so
        never ring again.
        """
        return or_zero(self.dynamodb(name, "Sum", slot, period, table))

    def dynamodb(
        self,
        name: str,
        statistic: str,
        slot: str | None = None,
        period: Duration = FIVE_MINUTES,
        table: dynamodb.ITableV2 | None = None,
    ) -> cloudwatch.Metric:
        """A metric of DynamoDB about the table of items, about one of its indexes, or about another table."""
        index = {} if slot is None else {"GlobalSecondaryIndexName": slot}
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=name,
            dimensions_map={"TableName": (table or self.table).table_name, **index},
            statistic=statistic,
            period=period,
        )

    def _own(self, name: str, statistic: str, period: Duration, more: dict[str, str]) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=names.NAMESPACE,
            metric_name=name,
            dimensions_map={names.ENVIRONMENT: self.settings.name, **more},
            statistic=statistic,
            period=period,
        )


def or_zero(metric: cloudwatch.Metric) -> cloudwatch.MathExpression:
    """The metric, and 0 where it has no data.

    Data come late, so the newest periods may be 0 at first. An alarm on it looks at more periods than it needs.
    """
    return cloudwatch.MathExpression(
        expression="FILL(events, 0)", using_metrics={"events": metric}, period=metric.period, label=metric.metric_name
    )


def absence(metric: cloudwatch.Metric) -> cloudwatch.MathExpression:
    """1 in a period in which the metric has no data or is 0, otherwise 0."""
    return cloudwatch.MathExpression(
        expression="IF(FILL(seen, 0) > 0, 0, 1)",
        using_metrics={"seen": metric},
        period=metric.period,
        label=f"no {metric.metric_name}",
    )


def share(part: cloudwatch.Metric, whole: cloudwatch.Metric, *, of_at_least: int = 1) -> cloudwatch.MathExpression:
    """The part divided by the whole; 0 in a period whose whole is less than `of_at_least`. Both are sums."""
    return cloudwatch.MathExpression(
        expression=f"IF(FILL(whole, 0) >= {of_at_least}, FILL(part, 0) / FILL(whole, 1), 0)",
        using_metrics={"part": part, "whole": whole},
        period=whole.period,
        label=f"share of {part.metric_name}",
    )
