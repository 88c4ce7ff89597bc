"""What CloudWatch knows about throttles of the table and its indexes: how many, why, and on which keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from dynashard import schema
from dynashard_serving.aws_services import metric_data
from dynashard_tools.environments import aws_errors
from dynashard_tools.failure import CommandError

CAUSES: Final = {
    "KeyRangeThroughput": "hot key range",
    "MaxOnDemandThroughput": "on-demand maximum",
    "ProvisionedThroughput": "provisioned capacity",
    "AccountLimit": "account limit",
}
"""The causes of throttles, as DynamoDB's metrics name them, and in words."""
PAGES: Final = {
    "KeyRangeThroughput": "throttled-key",
    "MaxOnDemandThroughput": "table-ceiling",
    "ProvisionedThroughput": "table-ceiling",
    "AccountLimit": "account-limit",
}
"""The pages of docs/runbooks by cause."""
WAYS: Final = ("Read", "Write")
SLOTS: Final = (None, *schema.INDEX_SLOTS)
_MOST_KEYS: Final = 50
"""Keys of one report; CloudWatch returns at most 100."""
_PARTITION_RULE: Final = "-PKT-"
_ITEM_RULE: Final = "-SKT-"
"""Parts of the names of the rules for throttled partition keys and throttled items."""


@dataclass(frozen=True, slots=True)
class Throttles:
    """Throttled events of the table, or of an index, for one cause."""

    slot: str | None
    way: str
    cause: str
    events: int


@dataclass(frozen=True, slots=True)
class ThrottledKey:
    """A stored key with its throttled events; `sort` is None in counts of whole partition keys."""

    slot: str | None
    partition: str
    sort: str | None
    events: int


@dataclass(frozen=True, slots=True)
class CloudWatch:
    """Reads throttles of one table.

    Attributes:
        dynamodb, cloudwatch: boto3's clients.
        table: the name of the table.
        clock: the time in epoch seconds.
    """

    dynamodb: Any
    cloudwatch: Any
    table: str
    clock: Callable[[], float]

    def counts(self, minutes: int) -> list[Throttles]:
        """Return the throttles of the last minutes by resource, way and cause; those that happened.

        Raises `EngineUnavailableError` if CloudWatch does not answer. Cost: 1 GetMetricData for 32 metrics.
        """
        wanted = [(slot, way, cause) for slot in SLOTS for way in WAYS for cause in CAUSES]
        start, end = self._window(minutes)
        results = metric_data(
            lambda: self.cloudwatch,
            StartTime=start,
            EndTime=end,
            MetricDataQueries=[
                {"Id": f"m{number}", "MetricStat": self._metric(*each, minutes)} for number, each in enumerate(wanted)
            ],
        )
        sums = {each["Id"]: int(sum(each["Values"])) for each in results}
        found = [Throttles(*each, sums.get(f"m{number}", 0)) for number, each in enumerate(wanted)]
        return [each for each in found if each.events]

    def keys(self, slot: str | None, minutes: int) -> list[ThrottledKey]:
        """Return the most throttled partition keys of the table or an index, and their most throttled items.

        Raises:
            CommandError: contributor insights are off, or AWS refuses a call.

        Cost: 1 DescribeContributorInsights, 1 GetInsightRuleReport for each of two rules.
        """
        of: dict[str, str] = {"IndexName": slot} if slot else {}
        with aws_errors(f"the throttled keys of {slot or self.table} cannot be read"):
            found = self.dynamodb.describe_contributor_insights(TableName=self.table, **of)
            status = found["ContributorInsightsStatus"]
            if status not in ("ENABLED", "ENABLING"):
                index = f" --index-name {slot}" if slot else ""
                raise CommandError(
                    f"contributor insights of {slot or self.table} are {status}: deploy the data stack again, or "
                    f"switch them on (`aws dynamodb update-contributor-insights --table-name {self.table}{index} "
                    f"--contributor-insights-action ENABLE --contributor-insights-mode THROTTLED_KEYS`)"
                )
            rules: Sequence[str] = found.get("ContributorInsightsRuleList", [])
            wanted = [rule for rule in rules if _PARTITION_RULE in rule or _ITEM_RULE in rule]
            return [key for rule in wanted for key in self._report(rule, slot, minutes)]

    def _report(self, rule: str, slot: str | None, minutes: int) -> list[ThrottledKey]:
        start, end = self._window(minutes)
        report = self.cloudwatch.get_insight_rule_report(
            RuleName=rule,
            StartTime=start,
            EndTime=end,
            Period=minutes * 60,
            MaxContributorCount=_MOST_KEYS,
            OrderBy="Sum",
        )
        return [_key(slot, each) for each in report.get("Contributors", [])]

    def _window(self, minutes: int) -> tuple[datetime, datetime]:
        """The last minutes, up to the end of this one."""
        end = (int(self.clock()) // 60 + 1) * 60
        return datetime.fromtimestamp(end - minutes * 60, UTC), datetime.fromtimestamp(end, UTC)

    def _metric(self, slot: str | None, way: str, cause: str, minutes: int) -> Mapping[str, Any]:
        dimensions = [{"Name": "TableName", "Value": self.table}]
        if slot:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": slot})
        name = f"{way}{cause}ThrottleEvents"
        metric = {"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": dimensions}
        return {"Metric": metric, "Period": minutes * 60, "Stat": "Sum"}


def _key(slot: str | None, contributor: Mapping[str, Any]) -> ThrottledKey:
    keys: Sequence[str] = contributor["Keys"]
    sort = keys[1] if len(keys) > 1 else None
    return ThrottledKey(slot, keys[0], sort, int(contributor["ApproximateAggregateValue"]))
