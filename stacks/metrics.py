"""Metrics of one environment: those that AWS writes about its resources, and those that our functions write."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb

from dynashard_serving import metric_names as names
from stacks.function import ENVIRONMENT_NAMES
from stacks.settings import Settings

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

    def dynamodb(
        self, name: str, statistic: str, slot: str | None = None, period: Duration = FIVE_MINUTES
    ) -> cloudwatch.Metric:
        """A metric of DynamoDB about the table, or about an index."""
        index = {} if slot is None else {"GlobalSecondaryIndexName": slot}
        return cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=name,
            dimensions_map={"TableName": self.table.table_name, **index},
            statistic=statistic,
            period=period,
        )

    def _own(self, name: str, statistic: str, period: Duration, more: dict[str, str]) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=names.NAMESPACE,
            metric_name=name,
            dimensions_map={names.ENVIRONMENT: ENVIRONMENT_NAMES[self.settings.purpose], **more},
            statistic=statistic,
            period=period,
        )
