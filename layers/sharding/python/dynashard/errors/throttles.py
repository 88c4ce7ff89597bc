"""DynamoDB throttled a request, and which of its limits was met."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from dynashard.errors.engine import EngineError


class ThrottleKind(StrEnum):
    """Which limit a throttle stands for. Only the first is cured by more shards."""

    KEY_RANGE = "key_range"
    PROVISIONED = "provisioned"
    ACCOUNT = "account"
    ON_DEMAND_MAXIMUM = "on_demand_maximum"
    UNKNOWN = "unknown"


_REASON: Final = re.compile(r"(?P<resource>Table|Index)(?P<operation>Read|Write)(?P<limit>[A-Za-z]+)Exceeded")
_KINDS: Final = {
    "KeyRangeThroughput": ThrottleKind.KEY_RANGE,
    "ProvisionedThroughput": ThrottleKind.PROVISIONED,
    "AccountLimit": ThrottleKind.ACCOUNT,
    "MaxOnDemandThroughput": ThrottleKind.ON_DEMAND_MAXIMUM,
}
_REMEDIES: Final = {
    ThrottleKind.KEY_RANGE: "One key range of {where} is hot: raise its shard count.",
    ThrottleKind.PROVISIONED: "The provisioned {units} capacity of {where} is used up: raise it, or bill on demand.",
    ThrottleKind.ACCOUNT: "The account's quota of {units} units for {where} is used up: ask for a higher one.",
    ThrottleKind.ON_DEMAND_MAXIMUM: "The maximum {units} throughput configured for {where} is reached: raise it.",
    ThrottleKind.UNKNOWN: "Try again later.",
}


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """One reason of a throttle: DynamoDB's text, such as `TableWriteKeyRangeThroughputExceeded`, and its ARN."""

    reason: str
    resource: str

    @property
    def kind(self) -> ThrottleKind:
        """The limit that was met."""
        return _KINDS.get(self._named("limit"), ThrottleKind.UNKNOWN)

    @property
    def on_index(self) -> bool:
        """Whether it is an index's limit; `index` is still None if DynamoDB does not say which one's."""
        return self.index is not None or self._named("resource") == "Index"

    @property
    def index(self) -> str | None:
        """The slot of the index whose limit it is, such as `GSI1`; None for the table's."""
        return self.resource.partition("/index/")[2] or None

    @property
    def reading(self) -> bool:
        """Whether a limit on reading was met. Neither this nor `writing` if the reason is unknown."""
        return self._named("operation") == "Read"

    @property
    def writing(self) -> bool:
        """Whether a limit on writing was met."""
        return self._named("operation") == "Write"

    @property
    def remedy(self) -> str:
        """What to do about it, as a sentence."""
        where = f"index {self.index}" if self.index else "an index" if self.on_index else "the table"
        units = "read" if self.reading else "write"
        return _REMEDIES[self.kind].format(where=where, units=units)

    def _named(self, part: str) -> str:
        """A part of the reason, its resource, operation or limit; empty if it is not written like the known ones."""
        told = _REASON.fullmatch(self.reason)
        return told[part] if told else ""


class ThrottledError(EngineError):
    """DynamoDB throttled the request, and retries did not outlast it.

    `reasons` is empty where DynamoDB gave none; `index_blamed` tells whether its message then speaks of the secondary
    indexes, without saying of which. `retry_after` is in seconds. `actions` names those actions of a transaction that
    were throttled, from 0.
    """

    code = "throttled"
    status = 429
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        operation: str,
        aws_code: str,
        reasons: Sequence[ThrottleReason] = (),
        index_blamed: bool = False,
        retry_after: int = 1,
        actions: Sequence[int] = (),
    ) -> None:
        super().__init__(message, operation=operation, aws_code=aws_code)
        self.actions = tuple(actions)
        self.reasons = tuple(reasons)
        self.index_blamed = index_blamed
        self.retry_after = retry_after

    @property
    def details(self) -> dict[str, Any]:
        """When to come back, in seconds, and the reasons without their ARNs."""
        return {"retry_after": self.retry_after, "reasons": sorted({r.reason for r in self.reasons})}


class KeyRangeThrottledError(ThrottledError):
    """One key range is hot: more shards help."""

    code = "key_range_throttled"


class TableThrottledError(ThrottledError):
    """The table, index or account is at a limit of its own: more shards do not help."""

    code = "table_throttled"
