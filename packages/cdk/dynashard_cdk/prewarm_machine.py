"""The state machine that runs a pre-warm, in Amazon States Language.

The provisioned way:

    Plan -> RaiseIdempotency -> Arm -> Switch -> Allocate -> Remember -> Restore -> StandDown -> Report
              any failure, and a deletion, go to Restore ----^

Every path goes through Restore, which ends when the table is on-demand, or after RESTORE_MINUTES. Then, and if the
machine itself stops, the stop-loss that Arm has set switches the table back.
"""

from typing import Any

from dynashard_cdk.sections import NativePrewarm, ProvisionedPrewarm

MACHINE_SECONDS = 3300
"""CloudFormation waits an hour for a custom resource; the stop-loss begins after that hour."""
POLL_SECONDS = 30
RESTORE_MINUTES = 25
"""Long enough for two changes, because a deletion may find the table still allocating."""
STEP_SECONDS = 60
"""Longer than the function may run, so that a step that timed out has ended."""

State = dict[str, Any]


def definition(prewarm: NativePrewarm | ProvisionedPrewarm, step_function_arn: str) -> State:
    """The machine for one way of pre-warming."""
    states = _Steps(step_function_arn)
    return {
        "Comment": f"Pre-warms the table, the {prewarm.way} way",
        "TimeoutSeconds": MACHINE_SECONDS,
        **(_native(states) if isinstance(prewarm, NativePrewarm) else _provisioned(states, prewarm)),
    }


def _native(steps: "_Steps") -> State:
    return {
        "StartAt": "Begin",
        "States": {
            "Begin": _choice(("$.mode", "restore", "Report"), default="Plan"),
            "Plan": steps.task("plan", result="$.plan", following="Decide", on_failure="Report"),
            "Decide": _choice(("$.plan.action", "raise", "Raise"), default="RaiseIdempotency"),
            "Raise": steps.task("raise", following="RaiseIdempotency", on_failure="Report"),
            "RaiseIdempotency": steps.task("raise_idempotency", following="Report", on_failure="Report"),
            **_ending(steps),
        },
    }


def _provisioned(steps: "_Steps", prewarm: ProvisionedPrewarm) -> State:
    polls = prewarm.allocate_minutes * 60 // POLL_SECONDS
    restore = steps.task("restore", following="StandDown", on_failure="Report", error="$.stranded", attempts=12)
    _poll(restore, RESTORE_MINUTES * 60 // POLL_SECONDS)
    allocate = steps.task("allocate", following="Remember", on_failure="Restore")
    _poll(allocate, polls)
    return {
        "StartAt": "Begin",
        "States": {
            "Begin": _choice(("$.mode", "restore", "Cancel"), default="Plan"),
            "Cancel": steps.task("cancel", following="Restore", on_failure="Restore"),
            "Plan": steps.task("plan", result="$.plan", following="RaiseIdempotency", on_failure="Restore"),
            # Before anything is switched: nothing stands between the switch and the return.
            "RaiseIdempotency": steps.task("raise_idempotency", following="Decide", on_failure="Restore"),
            "Decide": _choice(("$.plan.action", "switch", "Arm"), default="Restore"),
            "Arm": steps.task("arm", following="Switch", on_failure="Restore"),
            "Switch": steps.task("switch", following="Allocate", on_failure="Restore"),
            "Allocate": allocate,
            "Remember": steps.task("remember", following="Restore", on_failure="Restore"),
            "Restore": restore,
            "StandDown": steps.task("stand_down", following="Report", on_failure="Report", error="$.untidy"),
            **_ending(steps),
        },
    }


def _ending(steps: "_Steps") -> State:
    return {
        "Report": steps.task("report", result="$.report", following="Outcome", on_failure="Unanswered"),
        "Outcome": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.report.ok", "BooleanEquals": True, "Next": "Done"}],
            "Default": "Failed",
        },
        "Done": {"Type": "Succeed"},
        "Failed": {"Type": "Fail", "Error": "PrewarmFailed", "CausePath": "$.report.reason"},
        "Unanswered": {"Type": "Fail", "Error": "Unanswered", "Cause": "CloudFormation could not be answered"},
    }


class _Steps:
    """Makes tasks that call the step function."""

    def __init__(self, step_function_arn: str) -> None:
        self._arn = step_function_arn

    def task(
        self,
        step: str,
        *,
        following: str,
        on_failure: str,
        result: str = "$.done",
        error: str = "$.error",
        attempts: int = 4,
    ) -> State:
        """A step that is tried again after any error but a refusal."""
        return {
            "Type": "Task",
            "Resource": self._arn,
            "TimeoutSeconds": STEP_SECONDS,
            "Parameters": {"step": step, "run.$": "$$.Execution.Name", "input.$": "$"},
            # Never null, which would be right for most steps: CDK leaves nulls out when it writes JSON.
            "ResultPath": result,
            "Retry": [
                _retry(["NotYetError"], seconds=POLL_SECONDS, attempts=4, rate=1.0),
                {"ErrorEquals": ["PrewarmRefusedError", "PrewarmInterruptedError"], "MaxAttempts": 0},
                {
                    **_retry(["States.ALL"], seconds=2, attempts=attempts, rate=2.0),
                    "MaxDelaySeconds": 60,
                    "JitterStrategy": "FULL",
                },
            ],
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": error, "Next": on_failure}],
            "Next": following,
        }


def _poll(task: State, attempts: int) -> None:
    """Let a task check this often whether the table has stopped changing."""
    task["Retry"][0]["MaxAttempts"] = attempts


def _retry(errors: list[str], *, seconds: int, attempts: int, rate: float) -> State:
    return {"ErrorEquals": errors, "IntervalSeconds": seconds, "MaxAttempts": attempts, "BackoffRate": rate}


def _choice(rule: tuple[str, str, str], *, default: str) -> State:
    variable, value, following = rule
    choice = {"Variable": variable, "StringEquals": value, "Next": following}
    return {"Type": "Choice", "Choices": [choice], "Default": default}
