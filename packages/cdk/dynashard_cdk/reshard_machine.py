"""The state machine that carries out one resize, in Amazon States Language.

    Advance -> Next -> wait -> Wait --------------> Advance
                    -> work -> Work (all at once) -> Rest -> Advance
                    -> over -> Continue (a new execution) -> Continued
                    -> done -> Done
      a failure of any of them -> Stop (pauses the resize and says why) -> Failed

The record of the resize and the progress of its tasks are in the topology table, so an execution may end at any point
and another one continues.
"""

from typing import Any

MACHINE_SECONDS = 30 * 24 * 3600
"""An execution is followed by a new one long before; this ends one that hangs."""
REST_SECONDS = 1
MARGIN_SECONDS = 30
"""A task gives up this long after its function must have ended: what has timed out is not running any more."""
ADVANCE_SECONDS = 120
HOPELESS = ("ConfigurationError", "DeclarationError")
"""Errors that a retry would raise again, by the names of the layer's classes."""
CROWDED = ("Lambda.TooManyRequestsException",)
"""Lambda's refusal while the function's concurrency is used up, usually by other resizes."""
STARTED_BEFORE = ("StepFunctions.ExecutionAlreadyExistsException", "StepFunctions.ExecutionAlreadyExists")

State = dict[str, Any]


def definition(
    *, advance: str, work: str, stop: str, work_seconds: int, concurrency: int, partition: str = "aws"
) -> State:
    """Return the machine.

    Args:
        advance: ARN of the function that takes the next step of a resize.
        work: ARN of the function that works on a task.
        stop: ARN of the function that pauses a resize that has failed.
        work_seconds: longest run of the function that works.
        concurrency: tasks that run at once.
        partition: of the ARNs of AWS: `aws`, `aws-cn`, ...
    """
    return {
        "Comment": "Changes one shard count while traffic flows",
        "StartAt": "Advance",
        "TimeoutSeconds": MACHINE_SECONDS,
        "States": {
            "Advance": {
                **_task(advance, ADVANCE_SECONDS, {"input.$": "$"}),
                "ResultPath": "$.step",
                "Catch": _stop(),
                "Next": "Next",
            },
            "Next": _next(),
            "Wait": {"Type": "Wait", "SecondsPath": "$.step.seconds", "Next": "Advance"},
            "Work": _work(work, work_seconds, concurrency),
            # Tasks that end at once, such as throttled ones, do not become a busy loop.
            "Rest": {"Type": "Wait", "Seconds": REST_SECONDS, "Next": "Advance"},
            "Continue": _continue(partition),
            "Continued": {"Type": "Succeed"},
            "Done": {"Type": "Succeed"},
            "Stop": {
                **_task(stop, ADVANCE_SECONDS, {"input.$": "$"}),
                "ResultPath": "$.stopped",
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.unrecorded", "Next": "Failed"}],
                "Next": "Failed",
            },
            "Failed": {"Type": "Fail", "Error": "ReshardFailed", "CausePath": "$.error.Cause"},
        },
    }


def _next() -> State:
    """Choose by the kind of the last step."""
    kinds = (("work", "Work"), ("done", "Done"), ("over", "Continue"))
    return {
        "Type": "Choice",
        "Choices": [{"Variable": "$.step.kind", "StringEquals": kind, "Next": following} for kind, following in kinds],
        "Default": "Wait",
    }


def _work(function: str, seconds: int, concurrency: int) -> State:
    """One slice of each task; incomplete tasks are repeated in the next round."""
    return {
        "Type": "Map",
        "ItemsPath": "$.step.tasks",
        "ItemSelector": {"key.$": "$.key", "task.$": "$$.Map.Item.Value"},
        "MaxConcurrency": concurrency,
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "INLINE"},
            "StartAt": "Slice",
            "States": {"Slice": {**_task(function, seconds, {"input.$": "$"}), "End": True}},
        },
        # Never null, which would be right: CDK leaves nulls out when it writes JSON.
        "ResultPath": "$.worked",
        "Catch": _stop(),
        "Next": "Rest",
    }


def _continue(partition: str) -> State:
    """A new execution continues before the history of this one is full."""
    return {
        "Type": "Task",
        "Resource": f"arn:{partition}:states:::states:startExecution",
        "Parameters": {
            "StateMachineArn.$": "$$.StateMachine.Id",
            "Name.$": "$.step.following",
            "Input": {"key.$": "$.key", "run.$": "$.run", "part.$": "$.step.part"},
        },
        "ResultPath": "$.continued",
        "Retry": [{"ErrorEquals": list(STARTED_BEFORE), "MaxAttempts": 0}, _retry()],
        "Catch": [
            {"ErrorEquals": list(STARTED_BEFORE), "ResultPath": "$.continued", "Next": "Continued"},
            *_stop(),
        ],
        "Next": "Continued",
    }


def _task(function: str, seconds: int, parameters: State) -> State:
    return {
        "Type": "Task",
        "Resource": function,
        "TimeoutSeconds": seconds + MARGIN_SECONDS,
        "Parameters": parameters,
        "Retry": [{"ErrorEquals": list(HOPELESS), "MaxAttempts": 0}, _queueing(), _retry()],
    }


def _queueing() -> State:
    """A task waits about an hour for concurrency that others use; it has not failed."""
    return {
        "ErrorEquals": list(CROWDED),
        # Few tries, far apart, because each one is in the execution's history.
        "IntervalSeconds": 30,
        "MaxAttempts": 30,
        "BackoffRate": 2.0,
        "MaxDelaySeconds": 240,
        "JitterStrategy": "FULL",
    }


def _retry() -> State:
    """Ten tries over about a quarter of an hour; a longer failure needs a person."""
    return {
        "ErrorEquals": ["States.ALL"],
        "IntervalSeconds": 2,
        "MaxAttempts": 10,
        "BackoffRate": 2.0,
        "MaxDelaySeconds": 120,
        "JitterStrategy": "FULL",
    }


def _stop() -> list[State]:
    return [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Stop"}]
