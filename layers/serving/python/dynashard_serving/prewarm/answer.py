"""Answer CloudFormation with the result of a run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Send(Protocol):
    """Sends an answer to CloudFormation."""

    def __call__(self, url: str, body: bytes) -> None:
        """PUT the body to the address."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: whether well, whether the deployment may go on, and why."""

    ok: bool
    deployed: bool
    reason: str
    dollars: float


def outcome_of(data: Mapping[str, Any]) -> Outcome:
    """Read off a state machine's data how its run ended."""
    plan: Mapping[str, Any] = data.get("plan", {})
    dollars = float(plan.get("dollars", 0.0))
    if "stranded" in data:
        reason = (
            f"the table is still provisioned ({_cause(data['stranded'])}); the stop-loss switches it back every 5 "
            "minutes until it succeeds. Look at the table"
        )
        return Outcome(ok=False, deployed=False, reason=reason, dollars=dollars)
    if "error" in data:
        # The native way changes nothing that has to be undone: it may fail the stack that asks for it first, but
        # never a later deployment.
        later = data.get("wanted", {}).get("Way") == "native" and data["request"]["RequestType"] == "Update"
        reason = f"not pre-warmed: {_cause(data['error'])}"
        return Outcome(ok=False, deployed=later, reason=reason, dollars=dollars)
    return Outcome(ok=True, deployed=True, reason=str(plan.get("reason", "the table is on-demand")), dollars=dollars)


def _cause(error: Mapping[str, Any]) -> str:
    """The message in what Step Functions caught, whose cause is Lambda's JSON."""
    try:
        message = json.loads(error.get("Cause", "")).get("errorMessage", "")
    except ValueError:
        message = error.get("Cause", "")
    return message or str(error.get("Error", "unknown error"))


def answer(request: Mapping[str, Any], outcome: Outcome) -> bytes:
    """The body that CloudFormation expects of a custom resource."""
    return json.dumps(
        {
            "Status": "SUCCESS" if outcome.deployed else "FAILED",
            "Reason": outcome.reason[:1024],
            "PhysicalResourceId": request.get("PhysicalResourceId", "prewarm"),
            "StackId": request["StackId"],
            "RequestId": request["RequestId"],
            "LogicalResourceId": request["LogicalResourceId"],
            "Data": {"Outcome": outcome.reason[:1024], "ExpectedDollars": f"{outcome.dollars:.2f}"},
        }
    ).encode()
