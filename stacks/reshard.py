"""The reshard stack: what changes shard counts while traffic flows.

A resize request in the topology table starts a change: the table's stream starts the execution that carries it out.
"""

import json
from typing import Any

from aws_cdk import ArnFormat, CfnOutput, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from dynashard import schema
from stacks.alarms import Alarms
from stacks.bundling import Bundle
from stacks.data import DataStack
from stacks.function import (
    WAITED_FOR,
    PythonFunction,
    acknowledge,
    allow,
    layers,
    log_group,
    metrics_read,
)
from stacks.reshard_machine import ADVANCE_SECONDS, definition
from stacks.settings import Settings

TABLE_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
)
"""What moves items. It looks at no index: whole families are read by Scan, single partitions shard by shard."""
LOOK_ACTIONS = ("dynamodb:Query",)
"""What decides on the next phase looks whether shards are empty."""
TOPOLOGY_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Scan",
    "dynamodb:UpdateItem",
)
STREAM_ACTIONS = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)
WATCH_MINUTES = 15
SHRINK_HOURS = 1
SHRINK = {"look": "shrink"}
"""The event by which the watch looks for counts that have been quiet for long."""
OLDEST = "OldestReshardHours"
"""Metric of the watch, in the namespace of all our metrics."""
NAMESPACE = "Dynashard"
FINISH_SECONDS = 60
"""What a function may need after its slice for what it has begun, retries included."""
KEPT_DAYS = 14
LOOK_ATTEMPTS = 10
"""How often EventBridge tries to deliver a scheduled run within `WATCH_MINUTES`; then the next one is due."""
LOOK_RETRIES = 2
"""How often Lambda repeats a failed scheduled run; two is the most that it allows."""


class ReshardStack(Stack):
    """Carries out changes of shard counts.

    Attributes:
        machine: The state machine; an execution carries one change.
        operator: The function that other services and operators invoke.
        lost: Stream records for which no execution could be started.
        missed: Looks after changes that could not be taken.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        data: DataStack,
        bundle: Bundle,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, construct_id, description=f"Dynashard resharding ({settings.name})", **kwargs)
        self.settings = settings
        self._data = data
        self._bundle = bundle
        self._layers = layers(self, bundle)
        self.machine = self._machine()
        self.lost, self.missed = self._queue("Lost"), self._queue("Missed")
        self._dispatch_function()
        self.operator = self._operator_function()
        self._alarms(self._watch_function())
        CfnOutput(self, "OperatorFunction", value=self.operator.function.function_name)
        CfnOutput(self, "StateMachine", value=self.machine.state_machine_arn)

    def _machine(self) -> stepfunctions.StateMachine:
        """Its own name is known beforehand: it may start itself anew."""
        limits, name = self.settings.reshard, f"dynashard-{self.settings.name}-reshard"
        topology, table = self._topology(), self._data.table.table_arn
        work_seconds = limits.slice_seconds + FINISH_SECONDS
        advance = self._function("Advance", "advance", ADVANCE_SECONDS, [topology, allow(LOOK_ACTIONS, [table])])
        work = self._function("Work", "work", work_seconds, [topology, allow(TABLE_ACTIONS, [table])])
        stop = self._function("Stop", "stop", ADVANCE_SECONDS, [topology])
        arns = {"advance": advance, "work": work, "stop": stop}
        machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=name,
            definition_body=stepfunctions.DefinitionBody.from_string(
                self.to_json_string(
                    definition(
                        **{step: each.function.function_arn for step, each in arns.items()},
                        work_seconds=work_seconds,
                        concurrency=limits.concurrency,
                        partition=self.partition,
                    )
                )
            ),
            logs=stepfunctions.LogOptions(
                destination=log_group(self, "MachineLog", self.settings),
                level=stepfunctions.LogLevel.ALL,
                include_execution_data=False,
            ),
            tracing_enabled=True,
        )
        # `grant_invoke` would allow every version as well.
        machine.add_to_role_policy(allow(["lambda:InvokeFunction"], [e.function.function_arn for e in arns.values()]))
        itself = self.format_arn(
            service="states", resource="stateMachine", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        machine.add_to_role_policy(allow(["states:StartExecution"], [itself]))
        acknowledge(
            machine,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "Step Functions' log delivery and X-Ray actions know no resources.",
        )
        return machine

    def _dispatch_function(self) -> PythonFunction:
        stream = self._data.topology.table_stream_arn
        assert stream is not None  # noqa: S101 -- a fact about the data stack that types cannot say
        dispatch = self._function(
            "Dispatch",
            "dispatch",
            30,
            [allow(STREAM_ACTIONS, [stream]), self._may_start(), allow(["sqs:SendMessage"], [self.lost.queue_arn])],
            machine=True,
            unkept="Stream records that it cannot take go to a queue, which rings an alarm.",
        )
        mapping = lambda_.EventSourceMapping(
            self,
            "Stream",
            target=dispatch.function,
            event_source_arn=stream,
            # A resize request may be written before the mapping exists. An execution of a finished change ends at once.
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=10,
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
            retry_attempts=20,
            max_record_age=Duration.hours(6),
            on_failure=sources.SqsDlq(self.lost),
            filters=[{"pattern": json.dumps(each)} for each in _filters()],
        )
        # Lambda refuses the mapping while the role may not read the stream.
        mapping.node.add_dependency(dispatch.role)
        return dispatch

    def _operator_function(self) -> PythonFunction:
        return self._function("Operator", "operate", 60, [self._topology()])

    def _watch_function(self) -> PythonFunction:
        watch = self._function(
            "Watch",
            "watch",
            ADVANCE_SECONDS,
            [
                self._topology(),
                self._may_start(),
                allow(["states:ListExecutions"], [self.machine.state_machine_arn]),
                allow(["sqs:SendMessage"], [self.missed.queue_arn]),
                metrics_read(),
            ],
            machine=True,
            unkept="Looks that fail go to a queue as its destination for failures, which rings an alarm.",
        )
        # The construct for this would also let the role read the queue.
        kept = lambda_.CfnEventInvokeConfig(
            self,
            "WatchFailures",
            function_name=watch.function.function_name,
            qualifier="$LATEST",
            maximum_event_age_in_seconds=WATCH_MINUTES * 60,
            maximum_retry_attempts=LOOK_RETRIES,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self.missed.queue_arn)
            ),
        )
        # Lambda refuses the destination while the role may not send to it.
        kept.node.add_dependency(watch.role)
        name = self.settings.name
        self._look(watch, "WatchRule", f"Looks after changes of shard counts ({name})", Duration.minutes(WATCH_MINUTES))
        self._look(
            watch, "ShrinkRule", f"Halves shard counts that are quiet ({name})", Duration.hours(SHRINK_HOURS), SHRINK
        )
        return watch

    def _look(
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
                    watch.function,
                    retry_attempts=LOOK_ATTEMPTS,
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
        unkept: str = WAITED_FOR,
    ) -> PythonFunction:
        settings = self.settings
        environment = {
            **self._data.variables,
            "TOPOLOGY_OPERATION_SECONDS": str(settings.longest_operation_seconds),
            "TOPOLOGY_SKEW_SECONDS": str(settings.topology_skew_seconds),
            "CONCURRENCY": str(settings.reshard.concurrency),
            "SLICE_SECONDS": str(settings.reshard.slice_seconds),
        }
        if machine:
            environment["STATE_MACHINE_ARN"] = self.machine.state_machine_arn
        return PythonFunction(
            self,
            construct_id,
            settings=settings,
            description=f"Dynashard resharding, {entry}",
            code=self._bundle.function("reshard"),
            handler=f"functions.reshard.handler.{entry}",
            layers=self._layers,
            environment=environment,
            statements=statements,
            memory_mb=settings.reshard.memory_mb if entry == "work" else 512,
            timeout_seconds=seconds,
            concurrency=settings.concurrency[f"reshard.{entry}"],
            unkept=unkept,
        )

    def _topology(self) -> iam.PolicyStatement:
        return allow(TOPOLOGY_ACTIONS, [self._data.topology.table_arn])

    def _may_start(self) -> iam.PolicyStatement:
        return allow(["states:StartExecution"], [self.machine.state_machine_arn])

    def _queue(self, construct_id: str) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            construct_id,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(KEPT_DAYS),
        )
        for rule in ("AwsSolutions::AwsSolutions-SQS3", "Serverless::Serverless-SQSRedrivePolicy"):
            acknowledge(queue, rule, "It is itself the queue for what could not be handled, and a person empties it.")
        return queue

    def _alarms(self, watch: PythonFunction) -> None:
        alarms = Alarms(self, self.settings, "docs/deploying.md", Duration.minutes(WATCH_MINUTES))
        period = alarms.period
        for name, ended in (
            ("Failed", self.machine.metric_failed(period=period)),
            ("TimedOut", self.machine.metric_timed_out(period=period)),
            ("Aborted", self.machine.metric_aborted(period=period)),
        ):
            alarms.add(
                name,
                "A change of a shard count has ended badly and stands still. Its status says why; mend it and resume.",
                ended,
            )
        alarms.add(
            "Stuck",
            "A change of a shard count is not over after hours. Look at its status: is it paused, or its budget small?",
            alarms.own(OLDEST, "Maximum"),
            threshold=self.settings.reshard.stuck_hours,
        )
        alarms.add(
            "Undispatched",
            "Changes of shard counts were asked for and not started; the watch starts them. Empty the queue.",
            self.lost.metric_approximate_number_of_messages_visible(period=period, statistic="Maximum"),
        )
        alarms.add(
            "LooksMissed",
            "A look after changes of shard counts could not be taken. Read the queue for why; the next look makes up.",
            self.missed.metric_approximate_number_of_messages_visible(period=period, statistic="Maximum"),
        )
        alarms.add(
            "Unwatched",
            "The look after changes of shard counts fails. Read the log of the function.",
            watch.function.metric_errors(period=period),
        )
        alarms.add(
            "CannotGrow",
            "A key range is hot, and its count does not grow: the declaration is at its end.",
            alarms.own("GrowthCannot", "Sum"),
        )
        alarms.add(
            "AtLimit",
            "The table or the account is at its limit, which more shards do not raise.",
            alarms.own("GrowthLimit", "Sum"),
        )


def _filters() -> list[dict[str, Any]]:
    """Records of the stream that are worth a call: busy ones, and such as stood still. The function decides."""
    there = [{"exists": True}]
    count = {schema.TOPOLOGY_COUNT: {"N": there}}
    stood_still = {schema.TOPOLOGY_CHANGE: {"M": {"paused": {"BOOL": [True]}}}}
    return [
        {"dynamodb": {"NewImage": {**count, schema.TOPOLOGY_TARGET: {"N": there}}}},
        {"dynamodb": {"NewImage": {**count, schema.TOPOLOGY_SWEPT: {"BOOL": [False]}}}},
        {"dynamodb": {"NewImage": count, "OldImage": stood_still}},
    ]
