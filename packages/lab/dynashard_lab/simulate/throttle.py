"""Throttling answers, as DynamoDB gives them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynashard.errors import CancellationReason, ThrottleReason

_NAMESPACE: Final = "com.amazonaws.dynamodb.v20120810#"
_PROVISIONED: Final = "ProvisionedThroughputExceededException"
_ON_DEMAND: Final = "ThrottlingException"
_ACCOUNT: Final = "RequestLimitExceeded"
_FIELDS: Final = {_PROVISIONED: "ThrottlingReasons", _ACCOUNT: "ThrottlingReasons", _ON_DEMAND: "throttlingReasons"}
_ACTION_CODES: Final = {
    _PROVISIONED: "ProvisionedThroughputExceeded",
    _ON_DEMAND: "ThrottlingError",
    _ACCOUNT: CancellationReason.ACCOUNT_LIMIT,
}
_MESSAGES: Final = {
    _PROVISIONED: "The level of configured provisioned throughput for {where} was exceeded.",
    _ON_DEMAND: "Throughput exceeds the current capacity of {where}.",
    _ACCOUNT: "Throughput exceeds the current throughput quota for your account.",
}
_CANCELLED: Final = "Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"


@dataclass(frozen=True, slots=True)
class Throttle:
    """A refused request: the reasons, and whether the table is provisioned."""

    reasons: tuple[ThrottleReason, ...]
    provisioned: bool

    @property
    def code(self) -> str:
        """DynamoDB's name of the exception."""
        if self.provisioned:
            return _PROVISIONED
        return _ACCOUNT if all("AccountLimit" in each.reason for each in self.reasons) else _ON_DEMAND

    @property
    def message(self) -> str:
        """DynamoDB's text. It names secondary indexes if only they are the cause."""
        on_index = all(each.on_index for each in self.reasons)
        provisioned = "one or more global secondary indexes of the table" if on_index else "the table"
        blamed = "one or more global secondary indexes" if on_index else "your table or index"
        return _MESSAGES[self.code].format(where=provisioned if self.provisioned else blamed)

    def body(self) -> dict[str, Any]:
        """Return the body of the answer, whose HTTP status is 400."""
        reasons = [{"reason": each.reason, "resource": each.resource} for each in self.reasons]
        return {"__type": _NAMESPACE + self.code, "message": self.message, _FIELDS[self.code]: reasons}

    @property
    def action_code(self) -> str:
        """The code of a throttled action in a cancelled transaction."""
        return _ACTION_CODES[self.code]


def cancelled(actions: Sequence[Throttle | None]) -> dict[str, Any]:
    """Return the body of a cancelled transaction with these outcomes of its actions. It names no resource."""
    reasons = [
        {"Code": CancellationReason.NONE} if each is None else {"Code": each.action_code, "Message": each.message}
        for each in actions
    ]
    codes = ", ".join(each["Code"] for each in reasons)
    return {
        "__type": f"{_NAMESPACE}TransactionCanceledException",
        "Message": _CANCELLED.format(codes=codes),
        "CancellationReasons": reasons,
    }
