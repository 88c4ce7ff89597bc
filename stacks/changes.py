"""The changes stack: what is derived from items (copies, roll-ups) follows the table's stream."""

from typing import Any, Final

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.alarms import Alarms
from stacks.api import TOPOLOGY_ACTIONS
from stacks.bundling import Bundle
from stacks.data import DataStack
from stacks.function import PythonFunction, acknowledge, allow, layers, metrics_read
from stacks.reshard import KEPT_DAYS, STREAM_ACTIONS
from stacks.settings import Settings

BATCH: Final = 100
"""Records a batch."""
ATTEMPTS: Final = 50
"""How often a batch that can pass is tried again, with growing pauses."""
MOST_HOURS: Final = 12
"""After which a record is given up; the stream itself keeps them for 24."""
LATE_SECONDS: Final = 300
"""How far behind its stream the function may be before an alarm rings."""
FOLLOW_ACTIONS: Final = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
"""What following takes on the table: items by their keys, the copies of a source, and transactions; no index."""
PERIOD: Final = Duration.minutes(5)


class ChangesStack(Stack):
    """Follows the changes of items.

    Attributes:
        follower: The function that hands changes to what the domain declares.
        dead: Changes that could not be handled, and positions of batches that were given up.
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
        super().__init__(scope, construct_id, description=f"Dynashard changes ({settings.name})", **kwargs)
        self.settings = settings
        self.dead = self._queue()
        self.follower = self._function(data, bundle)
        self._mapping(data)
        self._alarms()
        CfnOutput(self, "DeadLetterQueue", value=self.dead.queue_url)

    def _function(self, data: DataStack, bundle: Bundle) -> PythonFunction:
        settings = self.settings
        return PythonFunction(
            self,
            "Follow",
            settings=settings,
            description="Dynashard changes",
            code=bundle.function("changes"),
            handler="functions.changes.handler.handler",
            layers=layers(self, bundle),
            environment={
                **data.variables,
                "DEAD_LETTER_QUEUE": self.dead.queue_url,
            },
            statements=self._statements(data),
            memory_mb=settings.changes.memory_mb,
            # It writes items: like any writer, it may not outlast the wait between two phases of a changing count.
            timeout_seconds=settings.longest_operation_seconds,
            concurrency=settings.concurrency["changes"],
            unkept="Changes that it cannot handle go to a queue, which rings an alarm.",
        )

    def _statements(self, data: DataStack) -> list[iam.PolicyStatement]:
        return [
            allow(STREAM_ACTIONS, [_stream(data)]),
            allow(FOLLOW_ACTIONS, [data.table.table_arn]),
            allow(TOPOLOGY_ACTIONS, [data.topology.table_arn]),
            allow(["sqs:SendMessage"], [self.dead.queue_arn]),
            # A throttled transaction gives no reason; it is looked up: how busy was the table, what is its limit?
            metrics_read(),
            allow(["dynamodb:DescribeTable"], [data.table.table_arn]),
        ]

    def _mapping(self, data: DataStack) -> None:
        mapping = lambda_.EventSourceMapping(
            self,
            "Stream",
            target=self.follower.function,
            event_source_arn=_stream(data),
            # An item may be written before the stream is listened to.
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=BATCH,
            parallelization_factor=self.settings.changes.lanes,
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
            retry_attempts=ATTEMPTS,
            max_record_age=Duration.hours(MOST_HOURS),
            on_failure=sources.SqsDlq(self.dead),
        )
        # Lambda refuses the mapping while the role may not read the stream.
        mapping.node.add_dependency(self.follower.role)

    def _queue(self) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "Dead",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(KEPT_DAYS),
        )
        for rule in ("AwsSolutions::AwsSolutions-SQS3", "Serverless::Serverless-SQSRedrivePolicy"):
            acknowledge(queue, rule, "It is itself the queue for what could not be handled, and a person empties it.")
        return queue

    def _alarms(self) -> None:
        function, alarms = self.follower.function, Alarms(self, self.settings, "docs/changes.md")
        alarms.add(
            "Late",
            "Copies and roll-ups lag behind the items they are made of. Is the function throttled, or failing?",
            function.metric("IteratorAge", period=alarms.period, statistic="Maximum"),
            threshold=LATE_SECONDS * 1000,
        )
        alarms.add(
            "Failing",
            "The function that follows changes fails or times out. Read its log.",
            function.metric_errors(period=alarms.period),
        )
        alarms.add(
            "GivenUp",
            "Changes could not be handled. Read the queue for the reasons, mend them, then repair what follows them.",
            self.dead.metric_approximate_number_of_messages_visible(period=alarms.period, statistic="Maximum"),
        )


def _stream(data: DataStack) -> str:
    stream = data.table.table_stream_arn
    assert stream is not None  # noqa: S101 -- a fact about the data stack that types cannot say
    return stream
