"""The writer stack: queues that absorb what is written without waiting, and the function that does it."""

from typing import Any, Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.alarms import Alarms
from stacks.api import TOPOLOGY_ACTIONS
from stacks.bundling import Bundle
from stacks.data import DataStack
from stacks.function import PythonFunction, acknowledge, allow, layers, metrics_read
from stacks.settings import Settings

RECEIVES: Final = 50
"""Deliveries after which SQS itself gives a message up. They come further and further apart: the last after hours."""
KEPT_DAYS: Final = 4
DEAD_KEPT_DAYS: Final = 14
VISIBILITY_TIMES: Final = 6
"""A message is hidden for this many timeouts of the function, as Lambda advises."""
MESSAGES: Final = 10
"""Messages a batch; each may hold dozens of items."""
LATE_SECONDS: Final = 300
"""How long a message may wait before an alarm rings."""
MOST_LEFT: Final = 1000
"""Items left on the queue within five minutes, because of throttling as a rule, before an alarm rings."""
WRITE_ACTIONS: Final = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
"""What it takes on the table to write items and to end the records of operations; pieces of attachments are queried."""
TAKE_ACTIONS: Final = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
)


class WriterStack(Stack):
    """Does what was accepted to be done later.

    Attributes:
        intake: Items that are only added, in any order.
        operations: Writes that somebody waits for, in order for each item.
        worker: The function that does them.
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
        super().__init__(scope, construct_id, description=f"Dynashard writer ({settings.name})", **kwargs)
        self.settings = settings
        self.intake, self.intake_dead = self._queues("Intake", fifo=False)
        self.operations, self.operations_dead = self._queues("Operations", fifo=True)
        self.worker = self._function(data, bundle)
        for name, queue, most in (
            ("Intake", self.intake, settings.writer.concurrency),
            ("Operations", self.operations, settings.writer.operations_concurrency),
        ):
            self._mapping(name, queue, most)
        self._alarms()

    def feed(self, function: PythonFunction) -> None:
        """Let a function put messages on the queues."""
        function.function.add_environment("QUEUE_URL", self.intake.queue_url)
        function.function.add_environment("OPERATIONS_QUEUE_URL", self.operations.queue_url)
        function.role.add_to_policy(allow(["sqs:SendMessage"], [self.intake.queue_arn, self.operations.queue_arn]))

    def _queues(self, name: str, *, fifo: bool) -> tuple[sqs.Queue, sqs.Queue]:
        dead = self._queue(f"{name}DeadLetters", fifo=fifo, retention_period=Duration.days(DEAD_KEPT_DAYS))
        acknowledge(
            dead,
            "Serverless::Serverless-SQSRedrivePolicy",
            "It is itself the queue for what could not be handled, and a person empties it.",
        )
        queue = self._queue(
            name,
            fifo=fifo,
            retention_period=Duration.days(KEPT_DAYS),
            visibility_timeout=Duration.seconds(VISIBILITY_TIMES * self.settings.longest_operation_seconds),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=RECEIVES, queue=dead),
        )
        for which, each in (("", queue), ("DeadLetters", dead)):
            CfnOutput(self, f"{name}{which}Url", value=each.queue_url)
        return queue, dead

    def _queue(self, name: str, *, fifo: bool, **properties: Any) -> sqs.Queue:
        if fifo:
            # Order and repeats concern one item's group: groups do not share a limit.
            properties |= {
                "fifo": True,
                "deduplication_scope": sqs.DeduplicationScope.MESSAGE_GROUP,
                "fifo_throughput_limit": sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
            }
        return sqs.Queue(
            self,
            name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # What was accepted and not done yet is data.
            removal_policy=RemovalPolicy.RETAIN if self.settings.production else RemovalPolicy.DESTROY,
            **properties,
        )

    def _function(self, data: DataStack, bundle: Bundle) -> PythonFunction:
        settings = self.settings
        return PythonFunction(
            self,
            "Worker",
            settings=settings,
            description="Dynashard writer",
            code=bundle.function("writer"),
            handler="functions.writer.handler.handler",
            layers=layers(self, bundle),
            environment={
                **data.variables,
                "QUEUE_URL": self.intake.queue_url,
                "QUEUE_DEAD_LETTERS_URL": self.intake_dead.queue_url,
                "OPERATIONS_QUEUE_URL": self.operations.queue_url,
                "OPERATIONS_QUEUE_DEAD_LETTERS_URL": self.operations_dead.queue_url,
                "TENANT_PATTERN": settings.auth.tenant_pattern,
            },
            statements=self._statements(data),
            memory_mb=settings.writer.memory_mb,
            # Like any writer, it may not outlast the wait between two phases of a changing count.
            timeout_seconds=settings.longest_operation_seconds,
            concurrency=settings.concurrency["writer"],
            unkept="What it cannot do stays on its queue, and goes to a queue of dead letters in the end.",
        )

    def _statements(self, data: DataStack) -> list[iam.PolicyStatement]:
        table = data.table.table_arn
        return [
            allow(WRITE_ACTIONS, [table]),
            allow(TOPOLOGY_ACTIONS, [data.topology.table_arn]),
            allow(TAKE_ACTIONS, [self.intake.queue_arn, self.operations.queue_arn]),
            allow(["sqs:SendMessage"], [self.intake_dead.queue_arn, self.operations_dead.queue_arn]),
            # A throttle without a reason is looked up: how busy was the table, and what is its limit?
            metrics_read(),
            allow(["dynamodb:DescribeTable"], [table]),
        ]

    def _mapping(self, name: str, queue: sqs.Queue, most: int) -> None:
        mapping = lambda_.EventSourceMapping(
            self,
            f"{name}Mapping",
            target=self.worker.function,
            event_source_arn=queue.queue_arn,
            batch_size=MESSAGES,
            max_concurrency=most,
            report_batch_item_failures=True,
        )
        acknowledge(
            mapping,
            "Serverless::Serverless-LambdaEventSourceMappingDestination",
            "A queue's dead letters are its own business: SQS knows no such destination.",
        )
        # Lambda refuses the mapping while the role may not read the queue.
        mapping.node.add_dependency(self.worker.role)

    def _alarms(self) -> None:
        alarms = Alarms(self, self.settings, "docs/firehose.md")
        for name, queue, dead in (
            ("Intake", self.intake, self.intake_dead),
            ("Operations", self.operations, self.operations_dead),
        ):
            alarms.add(
                f"{name}Late",
                "Accepted writes wait for minutes. Is the table throttled, or does the writer fail?",
                queue.metric_approximate_age_of_oldest_message(period=alarms.period),
                threshold=LATE_SECONDS,
            )
            alarms.add(
                f"{name}Dead",
                "Accepted writes could not be done. Read why, mend it, then `dynashard queue redrive`.",
                dead.metric_approximate_number_of_messages_visible(period=alarms.period, statistic="Maximum"),
            )
        alarms.add(
            "Lag",
            "From acceptance to stored it takes minutes.",
            alarms.own("WriterLagSeconds", "p99"),
            threshold=LATE_SECONDS,
        )
        alarms.add(
            "Throttled",
            "The writer's throughput is below what comes in: items stay on the queue.",
            alarms.own("WriterLeft", "Sum"),
            threshold=MOST_LEFT,
        )
        alarms.add(
            "Failing",
            "The writer fails or times out. Read its log.",
            self.worker.function.metric_errors(period=alarms.period),
        )
