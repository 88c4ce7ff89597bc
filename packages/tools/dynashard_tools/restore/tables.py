"""Restores tables by point-in-time recovery, and gives the new ones the settings of those they replace."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from dynashard.schema import INDEX_SLOTS
from dynashard_tools.failure import CommandError

PAUSE_SECONDS: Final = 20.0
MOST_POLLS: Final = 24 * 180
"""A day."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A table, and the name of the one that replaces it."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a restored table lacks: what it is, and the call that makes it."""

    about: str
    operation: str
    request: Mapping[str, Any]


@dataclass(frozen=True)
class Tables:
    """Tables that are restored together.

    Args:
        client: boto3's client of DynamoDB.
        pairs: the tables.
        sleep: waits between two looks at a table.
    """

    client: Any
    pairs: Sequence[Pair]
    sleep: Callable[[float], None]

    def refuse_moment(self, moment: datetime) -> None:
        """Raise `CommandError` if a table cannot be restored to a moment. Cost: 1 DescribeContinuousBackups each."""
        for pair in self.pairs:
            described = self.client.describe_continuous_backups(TableName=pair.source)["ContinuousBackupsDescription"]
            recovery = described.get("PointInTimeRecoveryDescription", {})
            if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
                raise CommandError(f"{pair.source} has no point-in-time recovery: it cannot be restored")
            earliest, latest = (recovery.get(f"{end}RestorableDateTime") for end in ("Earliest", "Latest"))
            if (earliest and moment < earliest) or (latest and moment > latest):
                raise CommandError(
                    f"{pair.source} can be restored to {earliest:%FT%TZ} until {latest:%FT%TZ}, not to {moment:%FT%TZ}"
                )

    def restored(self) -> bool:
        """Whether both new tables exist and are ready. Cost: 1 DescribeTable each."""
        return all(self._status(pair.target) == "ACTIVE" for pair in self.pairs)

    def restore(self, moment: datetime) -> None:
        """Restore those that do not exist yet, and wait for all of them.

        Raises:
            CommandError: a table is not ready after a day.
        """
        for pair in self.pairs:
            if self._status(pair.target) is None:
                self.client.restore_table_to_point_in_time(
                    SourceTableName=pair.source,
                    TargetTableName=pair.target,
                    RestoreDateTime=moment,
                    BillingModeOverride="PAY_PER_REQUEST",
                )
        for pair in self.pairs:
            self._wait(pair.target)

    def lacking(self) -> list[Setting]:
        """Return the settings that the new tables lack. Cost: 6 calls for a table, and 2 for each index."""
        return [setting for pair in self.pairs for setting in self._lacking(pair)]

    def complete(self) -> None:
        """Make all settings that are lacking."""
        for setting in self.lacking():
            self._wait(setting.request["TableName"])
            getattr(self.client, setting.operation)(**setting.request)
        for pair in self.pairs:
            self._wait(pair.target)

    def streams(self) -> Iterator[str]:
        """Yield the ARNs of the new tables' streams. Cost: 1 DescribeTable each."""
        for pair in self.pairs:
            yield str(self.client.describe_table(TableName=pair.target)["Table"].get("LatestStreamArn", ""))

    def _lacking(self, pair: Pair) -> Iterator[Setting]:
        old, new = (self.client.describe_table(TableName=name)["Table"] for name in (pair.source, pair.target))
        target = {"TableName": pair.target}
        stream = old.get("StreamSpecification", {})
        if stream.get("StreamEnabled") and not new.get("StreamSpecification", {}).get("StreamEnabled"):
            yield Setting(f"stream of {pair.target}", "update_table", {**target, "StreamSpecification": stream})
        if old.get("DeletionProtectionEnabled") and not new.get("DeletionProtectionEnabled"):
            yield Setting(
                f"deletion protection of {pair.target}", "update_table", {**target, "DeletionProtectionEnabled": True}
            )
        yield from _maxima(old, new, target)
        yield from self._expiry(pair)
        yield from self._recovery(pair)
        for slot in (None, *(each["IndexName"] for each in old.get("GlobalSecondaryIndexes", []))):
            yield from self._insights(pair, slot)

    def _expiry(self, pair: Pair) -> Iterator[Setting]:
        old, new = (
            self.client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            for name in (pair.source, pair.target)
        )
        on = ("ENABLED", "ENABLING")
        if old["TimeToLiveStatus"] in on and new["TimeToLiveStatus"] not in on:
            specification = {"Enabled": True, "AttributeName": old["AttributeName"]}
            request = {"TableName": pair.target, "TimeToLiveSpecification": specification}
            yield Setting(f"expiry of items of {pair.target}", "update_time_to_live", request)

    def _recovery(self, pair: Pair) -> Iterator[Setting]:
        old, new = (
            self.client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"].get(
                "PointInTimeRecoveryDescription", {}
            )
            for name in (pair.source, pair.target)
        )
        if old.get("PointInTimeRecoveryStatus") == "ENABLED" != new.get("PointInTimeRecoveryStatus"):
            days = {name: old[name] for name in ("RecoveryPeriodInDays",) if name in old}
            specification = {"PointInTimeRecoveryEnabled": True, **days}
            request = {"TableName": pair.target, "PointInTimeRecoverySpecification": specification}
            yield Setting(f"point-in-time recovery of {pair.target}", "update_continuous_backups", request)

    def _insights(self, pair: Pair, slot: str | None) -> Iterator[Setting]:
        of = {} if slot is None else {"IndexName": slot}
        old, new = (
            self.client.describe_contributor_insights(TableName=name, **of) for name in (pair.source, pair.target)
        )
        on = ("ENABLED", "ENABLING")
        if old.get("ContributorInsightsStatus") in on and new.get("ContributorInsightsStatus") not in on:
            mode = {name: old[name] for name in ("ContributorInsightsMode",) if name in old}
            request = {"TableName": pair.target, **of, "ContributorInsightsAction": "ENABLE", **mode}
            where = pair.target if slot is None else f"{slot} of {pair.target}"
            yield Setting(f"contributor insights of {where}", "update_contributor_insights", request)

    def _status(self, table: str) -> str | None:
        try:
            return str(self.client.describe_table(TableName=table)["Table"]["TableStatus"])
        except self.client.exceptions.ResourceNotFoundException:
            return None

    def _wait(self, table: str) -> None:
        for _ in range(MOST_POLLS):
            if self._status(table) == "ACTIVE":
                return
            self.sleep(PAUSE_SECONDS)
        raise CommandError(f"{table} is not ready after a day: look at it in the console, and run the command again")


def _maxima(old: Mapping[str, Any], new: Mapping[str, Any], target: Mapping[str, str]) -> Iterator[Setting]:
    """Yield the on-demand maxima of a table and of its indexes that the new one lacks."""
    table = target["TableName"]
    if (wanted := old.get("OnDemandThroughput")) and new.get("OnDemandThroughput") != wanted:
        yield Setting(f"most units of {table}", "update_table", {**target, "OnDemandThroughput": wanted})
    indexes = [
        {each["IndexName"]: each.get("OnDemandThroughput") for each in described.get("GlobalSecondaryIndexes", [])}
        for described in (old, new)
    ]
    for slot in INDEX_SLOTS:
        if (wanted := indexes[0].get(slot)) and indexes[1].get(slot) != wanted:
            update = {"Update": {"IndexName": slot, "OnDemandThroughput": wanted}}
            request = {**target, "GlobalSecondaryIndexUpdates": [update]}
            yield Setting(f"most units of {slot} of {table}", "update_table", request)
