"""Why DynamoDB refused a request: the reasons of throttles and of cancelled transactions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final


@dataclass(frozen=True, slots=True)
class CancellationReason:
    """Why an action of a transaction was not executed: DynamoDB's code, text, and the stored item if asked for."""

    NONE: ClassVar[str] = "None"
    CONDITION: ClassVar[str] = "ConditionalCheckFailed"
    CONFLICT: ClassVar[str] = "TransactionConflict"
    INVALID: ClassVar[str] = "ValidationError"
    ACCOUNT_LIMIT: ClassVar[str] = "RequestLimitExceeded"
    THROTTLES: ClassVar[frozenset[str]] = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", ACCOUNT_LIMIT})

    code: str
    item: Mapping[str, Any] | None = None
    message: str = ""

    @property
    def refused(self) -> bool:
        """Whether the action had a part in the cancellation."""
        return self.code != self.NONE

    @property
    def condition_failed(self) -> bool:
        """Whether its condition does not hold."""
        return self.code == self.CONDITION

    @property
    def conflicting_item(self) -> Mapping[str, Any] | None:
        """The stored item that its condition does not hold for; None if there is none, or if it was not the reason."""
        return self.item if self.condition_failed else None

    @property
    def transient(self) -> bool:
        """Whether the same action may be possible later: nothing is wrong with the request itself."""
        return self.code in {self.NONE, self.CONDITION, self.CONFLICT, *self.THROTTLES}


class ThrottleKind(StrEnum):
    """What a throttle limits: a key range, against which more shards help, or the table, index or account."""

    KEY_RANGE = "key_range"
    TABLE = "table"
    UNKNOWN = "unknown"


_REASON: Final = r"(?P<resource>Table|Index)(?P<operation>Read|Write)(?P<limit>[A-Za-z]+)Exceeded"
_KEY_RANGE: Final = "KeyRangeThroughput"
_REMEDIES: Final = {
    _KEY_RANGE: "One key range of {where} is hot: raise its shard count.",
    "ProvisionedThroughput": "The provisioned {units} capacity of {where} is used up: raise it, or bill on demand.",
    "AccountLimit": "The account's quota of {units} units for {where} is used up: ask for a higher one.",
    "MaxOnDemandThroughput": "The maximum {units} throughput configured for {where} is reached: raise it.",
}
"""What to do about each limit that a reason can name."""


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """One reason of a throttle: DynamoDB's text, such as `TableWriteKeyRangeThroughputExceeded`, and its ARN."""

    reason: str
    resource: str

    @property
    def kind(self) -> ThrottleKind:
        """What is limited."""
        limit = self._part("limit")
        if limit not in _REMEDIES:
            return ThrottleKind.UNKNOWN
        return ThrottleKind.KEY_RANGE if limit == _KEY_RANGE else ThrottleKind.TABLE

    @property
    def on_index(self) -> bool:
        """Whether it is an index's limit; `index` is still None if DynamoDB does not say which one's."""
        return self.index is not None or self._part("resource") == "Index"

    @property
    def index(self) -> str | None:
        """The slot of the index whose limit it is, such as `GSI1`; None for the table's."""
        return self.resource.partition("/index/")[2] or None

    @property
    def reading(self) -> bool:
        """Whether it is a limit on reading, not on writing; False if the reason is unknown."""
        return self._part("operation") == "Read"

    @property
    def remedy(self) -> str:
        """What to do about it, as a sentence."""
        where = f"index {self.index}" if self.index else "an index" if self.on_index else "the table"
        units = "read" if self.reading else "write"
        return _REMEDIES.get(self._part("limit"), "Try again later.").format(where=where, units=units)

    def _part(self, name: str) -> str:
        """Return the resource, operation or limit in the reason; empty if it is not written like the known ones."""
        match = re.fullmatch(_REASON, self.reason)
        return match[name] if match else ""
