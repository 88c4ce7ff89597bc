"""The reshard stack: changes shard counts during normal traffic.

A resize request in the topology table is all it needs: the table's stream starts the execution that carries it out.
"""

import json
from collections.abc import Sequence
from typing import Any

from aws_cdk import ArnFormat, CfnOutput, Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from dynashard import schema
from dynashard_cdk.function import WAITED_FOR, PythonFunction
from dynashard_cdk.permissions import (
    CHECK_ACTIONS,
    CONTROLLER_ACTIONS,
    MOVE_ACTIONS,
    READ_STREAM_ACTIONS,
    STREAM_ACTIONS,
    TOPOLOGY_ACTIONS,
    TOPOLOGY_SCAN_ACTIONS,
    WORK_ACTIONS,
    allow,
    mappings_read,
    metrics_read,
)
from dynashard_cdk.release import LIVE
from dynashard_cdk.reshard_machine import ADVANCE_SECONDS, definition
from dynashard_cdk.stack import FunctionStack

WATCH_MINUTES = 15
SHRINK_HOURS = 1
SHRINK = {"look": "shrink"}
"""The event by which the watch looks for counts without throttling for long, which it halves."""
FINISH_SECONDS = 60
"""What a function may need after its slice to complete what it has begun, with retries."""
DELIVERY_ATTEMPTS = 10
"""How often EventBridge tries to deliver a scheduled run within `WATCH_MINUTES`; then the next one is due."""
WATCH_RETRIES = 2
"""How often Lambda repeats a failed scheduled run; two is the most that it allows."""


class ReshardStack(FunctionStack):
    """Carries out resizes.

    Attributes:
        machine: the state machine; an execution carries one resize.
        advance, work, stop: the functions that take its steps.
        dispatch: the function that starts its executions.
        watch: the function that starts resizes again which have no execution.
        operator: the function that other services and operators invoke.
        lost: stream records for which no execution could be started.
        missed: scheduled runs of the watch that failed.
    """

    def __init__(self, scope: Construct, construct_id: str, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, purpose="resharding", **kwargs)
        table = self.data.table.table_arn
        work_seconds = self.settings.reshard.slice_seconds + FINISH_SECONDS
        advancing = [self._topology(CONTROLLER_ACTIONS), allow(CHECK_ACTIONS, [table])]
        working = [self._topology(WORK_ACTIONS), allow(MOVE_ACTIONS, [table])]
        self.advance = self._function("Advance", "advance", ADVANCE_SECONDS, advancing)
        self.work = self._function("Work", "work", work_seconds, working)
        self.stop = self._function("Stop", "stop", ADVANCE_SECONDS, [self._topology(TOPOLOGY_ACTIONS)])
        self.machine = self._machine(work_seconds)
        self.lost, self.missed = self.dead_letter_queue("Lost"), self.dead_letter_queue("Missed")
        self.dispatch = self._dispatch_function()
        self.operator = self._function("Operator", "operate", 60, [self._topology(TOPOLOGY_ACTIONS)])
        self.watch = self._watch_function()
        CfnOutput(self, "OperatorFunction", value=self.operator.live.function_name)
        CfnOutput(self, "StateMachine", value=self.machine.state_machine_arn)

    def _machine(self, work_seconds: int) -> stepfunctions.StateMachine:
        name = f"dynashard-{self.settings.name}-reshard"
        states = definition(
            advance=self.advance.live.function_arn,
            work=self.work.live.function_arn,
            stop=self.stop.live.function_arn,
            work_seconds=work_seconds,
            concurrency=self.settings.reshard.concurrency,
            partition=self.partition,
        )
        machine = self.state_machine(states, [self.advance, self.work, self.stop], name)
        # It starts itself anew, so its ARN is made from its name.
        itself = self.format_arn(
            service="states", resource="stateMachine", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        machine.add_to_role_policy(allow(["states:StartExecution"], [itself]))
        return machine

    def _dispatch_function(self) -> PythonFunction:
        stream = self.data.topology_stream_arn
        dispatch = self._function(
            "Dispatch",
            "dispatch",
            30,
            [allow(STREAM_ACTIONS, [stream]), self._may_start(), allow(["sqs:SendMessage"], [self.lost.queue_arn])],
            machine=True,
            unkept="Stream records that it cannot take go to a queue, which rings an alarm.",
        )
        self.consume_stream(
            dispatch,
            stream,
            self.lost,
            batch_size=10,
            retry_attempts=20,
            max_record_age=Duration.hours(6),
            filters=[{"pattern": json.dumps(each)} for each in _filters()],
        )
        return dispatch

    def _watch_function(self) -> PythonFunction:
        watch = self._function(
            "Watch",
            "watch",
            ADVANCE_SECONDS,
            [
                self._topology(TOPOLOGY_SCAN_ACTIONS),
                self._may_start(),
                allow(["states:ListExecutions"], [self.machine.state_machine_arn]),
                allow(["sqs:SendMessage"], [self.missed.queue_arn]),
                metrics_read(),
                allow(READ_STREAM_ACTIONS, [self.data.stream_arn]),
                mappings_read(),
            ],
            machine=True,
            table_stream=True,
            unkept="Failed runs go to a queue as its destination for failures, which rings an alarm.",
        )
        # The construct for this would also let the role read the queue.
        kept = lambda_.CfnEventInvokeConfig(
            self,
            "WatchFailures",
            function_name=watch.function.function_name,
            qualifier=LIVE,
            maximum_event_age_in_seconds=WATCH_MINUTES * 60,
            maximum_retry_attempts=WATCH_RETRIES,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self.missed.queue_arn)
            ),
        )
        # Lambda refuses the destination while the role may not send to it.
        kept.node.add_dependency(watch.role, watch.live)
        name = self.settings.name
        self._schedule(watch, "WatchRule", f"Watches resizes ({name})", Duration.minutes(WATCH_MINUTES))
        self._schedule(
            watch, "ShrinkRule", f"Halves shard counts that are quiet ({name})", Duration.hours(SHRINK_HOURS), SHRINK
        )
        return watch

    def _schedule(
        self,
        watch: PythonFunction,
        construct_id: str,
        description: str,
        every: Duration,
        event: dict[str, str] | None = None,
    ) -> None:
        events.Rule(
            self,
            construct_id,
            description=description,
            schedule=events.Schedule.rate(every),
            targets=[
                targets.LambdaFunction(
                    watch.live,
                    retry_attempts=DELIVERY_ATTEMPTS,
                    max_event_age=Duration.minutes(WATCH_MINUTES),
                    dead_letter_queue=self.missed,
                    event=None if event is None else events.RuleTargetInput.from_object(event),
                )
            ],
        )

    def _function(
        self,
        construct_id: str,
        entry: str,
        seconds: int,
        statements: list[iam.PolicyStatement],
        *,
        machine: bool = False,
        table_stream: bool = False,
        unkept: str = WAITED_FOR,
    ) -> PythonFunction:
        settings = self.settings
        environment = {
            **self.data.variables,
            "TOPOLOGY_OPERATION_SECONDS": str(settings.longest_operation_seconds),
            "TOPOLOGY_SKEW_SECONDS": str(settings.topology_skew_seconds),
            "CONCURRENCY": str(settings.reshard.concurrency),
            "SLICE_SECONDS": str(settings.reshard.slice_seconds),
        }
        if machine:
            environment["STATE_MACHINE_ARN"] = self.machine.state_machine_arn
        if table_stream:
            environment["TABLE_STREAM_ARN"] = self.data.stream_arn
        return self.python_function(
            construct_id,
            "reshard",
            f"resharding, {entry}",
            entry=entry,
            environment=environment,
            statements=statements,
            memory_mb=settings.reshard.memory_mb if entry == "work" else 512,
            timeout_seconds=seconds,
            concurrency=settings.concurrency[f"reshard.{entry}"],
            unkept=unkept,
        )

    def _topology(self, actions: Sequence[str]) -> iam.PolicyStatement:
        return allow(actions, [self.data.topology.table_arn])

    def _may_start(self) -> iam.PolicyStatement:
        return allow(["states:StartExecution"], [self.machine.state_machine_arn])


def _filters() -> list[dict[str, Any]]:
    """Select the stream records of resizes that are under way or were paused; the function decides."""
    there = [{"exists": True}]
    count = {schema.TOPOLOGY_COUNT: {"N": there}}
    stood_still = {schema.TOPOLOGY_RESIZE: {"M": {"paused": {"BOOL": [True]}}}}
    return [
        {"dynamodb": {"NewImage": {**count, schema.TOPOLOGY_TARGET: {"N": there}}}},
        {"dynamodb": {"NewImage": {**count, schema.TOPOLOGY_SWEPT: {"BOOL": [False]}}}},
        {"dynamodb": {"NewImage": count, "OldImage": stood_still}},
    ]
