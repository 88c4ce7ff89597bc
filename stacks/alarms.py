"""Alarms: each one is raised when a metric reaches its threshold. Missing data does not raise it.

There is one for each metric: a sum of metrics costs as much, and does not say which of them it was.
"""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from stacks.function import ENVIRONMENT_NAMES
from stacks.settings import Settings

NAMESPACE: Final = "Dynashard"
"""Of the metrics that functions write."""
PERIOD: Final = Duration.minutes(5)


@dataclass(frozen=True)
class Alarms:
    """The alarms of a stack.

    Attributes:
        page: the page of the docs that says what to do.
        period: how long a figure is summed up for.
    """

    scope: Construct
    settings: Settings
    page: str
    period: Duration = PERIOD

    def own(self, name: str, statistic: str) -> cloudwatch.Metric:
        """A metric that our functions write."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"environment": ENVIRONMENT_NAMES[self.settings.purpose]},
            statistic=statistic,
            period=self.period,
        )

    def add(
        self, construct_id: str, description: str, metric: cloudwatch.IMetric, *, threshold: int = 1, periods: int = 1
    ) -> None:
        """Ring when the metric is at the threshold or above it for so many periods in a row."""
        cloudwatch.Alarm(
            self.scope,
            construct_id,
            alarm_description=f"{description} See {self.page}.",
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def failing(self, function: lambda_.Function, description: str, construct_id: str = "Failing") -> None:
        """Ring when a function fails or times out."""
        self.add(construct_id, description, function.metric_errors(period=self.period))

    def filled(self, construct_id: str, description: str, queue: sqs.Queue) -> None:
        """Ring when a message is on a queue."""
        metric = queue.metric_approximate_number_of_messages_visible(period=self.period, statistic="Maximum")
        self.add(construct_id, description, metric)

    def ended_badly(self, machine: stepfunctions.StateMachine, description: str) -> None:
        """Ring when an execution fails, times out or is aborted."""
        self.add("Failed", description, machine.metric_failed(period=self.period))
        self.add("TimedOut", description, machine.metric_timed_out(period=self.period))
        self.add("Aborted", description, machine.metric_aborted(period=self.period))
