"""Alarms: each watches a metric, notifies the topic, and names the command and the page to begin with.

There is one alarm for each metric: a sum of metrics costs as much, and does not say which of them it was. An alarm on a
share of requests watches two.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from dynashard_cdk.settings import Settings

FIRST_COMMANDS: Final = {
    "account-limit": "dynashard hot --env {env}",
    "capacity-step-missed": "aws application-autoscaling describe-scalable-targets --service-namespace dynamodb",
    "changes-dead-letters": "dynashard logs dead-letters --env {env} --minutes 1440",
    "dead-letters": "dynashard queue status --env {env}",
    "function-failing": "dynashard logs function-errors --env {env}",
    "function-throttled": "dynashard logs gateway-refusals --env {env}",
    "growth-failed": "dynashard logs growth --env {env}",
    "growth-frequent": "dynashard logs growth --env {env} --minutes 120",
    "growth-limit": "dynashard hot --env {env}",
    "growth-refused": "dynashard logs growth --env {env}",
    "latency": "dynashard logs slow-requests --env {env}",
    "no-traffic": "dynashard logs requests --env {env}",
    "operations-failed": "dynashard logs failed-writes --env {env} --minutes 1440",
    "outcome-unknown": "dynashard logs outcome-unknown --env {env}",
    "prewarm-failed": "aws dynamodb describe-table --table-name $TABLE",
    "prewarm-not-returned": "aws dynamodb describe-table --table-name $TABLE",
    "queue-age": "dynashard queue status --env {env}",
    "reshard-failed": "dynashard reshard status --env {env}",
    "reshard-idle": "dynashard reshard status --env {env}",
    "reshard-not-started": "dynashard reshard status --env {env}",
    "reshard-old": "dynashard reshard status --env {env}",
    "reshard-paused": "dynashard reshard status --env {env}",
    "rollup-lag": "dynashard logs stream --env {env}",
    "server-errors": "dynashard logs server-errors --env {env}",
    "shed": "dynashard hot --env {env}",
    "small-table-throttled": "dynashard logs throttled-requests --env {env}",
    "stream-age": "dynashard logs stream --env {env}",
    "table-ceiling": "dynashard hot --env {env}",
    "throttled-key": "dynashard hot --env {env}",
    "unauthorized": "dynashard logs unauthorized --env {env}",
    "undecodable-items": "dynashard verify --env {env}",
    "watch-missed": "dynashard reshard status --env {env}",
    "writer-throttled": "dynashard hot --env {env}",
}
"""The pages of docs/runbooks, each with the command that it begins with. `{env}` is the name of the environment."""


class Silence(Enum):
    """What it means that an alarm's metric has no data. The value is the alarm's `TreatMissingData`."""

    CALM = cloudwatch.TreatMissingData.NOT_BREACHING
    """Nothing happened that the metric counts or measures."""
    FAULT = cloudwatch.TreatMissingData.BREACHING
    """What the metric shows does not happen any more, and it should."""
    UNKNOWN = cloudwatch.TreatMissingData.IGNORE
    """What writes the metric does not run, which has an alarm of its own: the state stays as it was."""


class FewSamples(Enum):
    """What an alarm on a percentile does if a period has too few samples: fewer than 1,000 for p99, and 20 for p50."""

    JUDGED = "evaluate"
    NOT_JUDGED = "ignore"


def alarm_name(settings: Settings, name: str) -> str:
    """Return the full name of an alarm: names begin alike, so that one prefix selects those of an environment."""
    return f"dynashard-{settings.name}-{name}"


@dataclass(frozen=True)
class Alarms:
    """Adds alarms to a stack.

    Attributes:
        topic: what they notify, when they are raised and when they end.
    """

    scope: Construct
    settings: Settings
    topic: sns.ITopic

    def add(
        self,
        name: str,
        description: str,
        metric: cloudwatch.IMetric,
        *,
        silence: Silence,
        page: str | None = None,
        threshold: float = 1,
        periods: int = 1,
        among: int | None = None,
        few_samples: FewSamples | None = None,
    ) -> None:
        """Ring when the metric is at the threshold or above it for so many periods.

        Args:
            name: of the alarm, such as `latency`.
            description: what it means, in a sentence.
            metric: a metric, or an expression.
            silence: what it means that the metric has no data.
            page: the page of docs/runbooks, if its name is not the alarm's.
            threshold: in the unit of the metric.
            periods: how many periods of the metric.
            among: of how many of the last periods; None if all of them have to be in a row.
            few_samples: what happens if there are too few for a percentile; None for other statistics.
        """
        page = page or name
        command = FIRST_COMMANDS[page].format(env=self.settings.name)
        # A command with a variable needs the line before it on the page.
        run = "" if "$" in command else f" Run `{command}`."
        alarm = cloudwatch.Alarm(
            self.scope,
            "".join(part.capitalize() for part in name.split("-")),
            alarm_name=alarm_name(self.settings, name),
            alarm_description=f"{description}{run} {self.settings.monitoring.runbooks}/{page}.md",
            metric=metric,
            threshold=threshold,
            evaluation_periods=among or periods,
            datapoints_to_alarm=periods if among else None,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=silence.value,
            evaluate_low_sample_count_percentile=few_samples.value if few_samples else None,
        )
        notify = actions.SnsAction(self.topic)
        alarm.add_alarm_action(notify)
        alarm.add_ok_action(notify)
