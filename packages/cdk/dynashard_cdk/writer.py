"""The writer stack: queues of writes that were accepted for later, and the function that executes them."""

from typing import Any, Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from dynashard_cdk.encryption import queue_encryption
from dynashard_cdk.function import PythonFunction, acknowledge
from dynashard_cdk.permissions import RECEIVE_ACTIONS, WRITE_ACTIONS, allow
from dynashard_cdk.stack import DEAD_LETTER_DAYS, DEAD_LETTERS_STAY, FunctionStack

RECEIVES: Final = 50
"""Deliveries after which SQS makes a message a dead letter. Their distance grows; the last comes after hours."""
KEPT_DAYS: Final = 4
VISIBILITY_TIMES: Final = 6
"""A message is hidden for this many timeouts of the function, as Lambda advises."""
MESSAGES: Final = 10
"""Messages a batch; each may hold dozens of items."""


class WriterStack(FunctionStack):
    """Executes writes that were accepted for later.

    Attributes:
        intake: items that are only added, in any order.
        operations: writes whose callers wait for them, in order for each item.
        worker: the function that executes them.
    """

    def __init__(self, scope: Construct, construct_id: str, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, purpose="writer", **kwargs)
        settings = self.settings
        self.intake, self.intake_dead = self._queues("Intake", fifo=False)
        self.operations, self.operations_dead = self._queues("Operations", fifo=True)
        self.worker = self._function()
        self._mapping("Intake", self.intake, settings.writer.concurrency)
        self._mapping("Operations", self.operations, settings.writer.operations_concurrency)

    def feed(self, function: PythonFunction) -> None:
        """Let a function put messages on the queues."""
        function.function.add_environment("QUEUE_URL", self.intake.queue_url)
        function.function.add_environment("OPERATIONS_QUEUE_URL", self.operations.queue_url)
        function.role.add_to_policy(allow(["sqs:SendMessage"], [self.intake.queue_arn, self.operations.queue_arn]))

    def _queues(self, name: str, *, fifo: bool) -> tuple[sqs.Queue, sqs.Queue]:
        dead = self._queue(f"{name}DeadLetters", fifo=fifo, retention_period=Duration.days(DEAD_LETTER_DAYS))
        acknowledge(dead, "Serverless::Serverless-SQSRedrivePolicy", DEAD_LETTERS_STAY)
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
            # Order and deduplication are per item, so the groups do not share a limit.
            properties |= {
                "fifo": True,
                "deduplication_scope": sqs.DeduplicationScope.MESSAGE_GROUP,
                "fifo_throughput_limit": sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
            }
        return sqs.Queue(
            self,
            name,
            **queue_encryption(self, self.settings),
            enforce_ssl=True,
            # Accepted writes that were not executed yet are data.
            removal_policy=RemovalPolicy.RETAIN if self.settings.production else RemovalPolicy.DESTROY,
            **properties,
        )

    def _function(self) -> PythonFunction:
        settings = self.settings
        return self.python_function(
            "Worker",
            "writer",
            "writer",
            environment={
                **self.data.variables,
                "QUEUE_URL": self.intake.queue_url,
                "QUEUE_DEAD_LETTERS_URL": self.intake_dead.queue_url,
                "OPERATIONS_QUEUE_URL": self.operations.queue_url,
                "OPERATIONS_QUEUE_DEAD_LETTERS_URL": self.operations_dead.queue_url,
                "TENANT_PATTERN": settings.auth.tenant_pattern,
            },
            statements=[
                *self.data.allow_writing(WRITE_ACTIONS),
                allow(RECEIVE_ACTIONS, [self.intake.queue_arn, self.operations.queue_arn]),
                allow(["sqs:SendMessage"], [self.intake_dead.queue_arn, self.operations_dead.queue_arn]),
            ],
            memory_mb=settings.writer.memory_mb,
            # A writer may not outlast the wait between two phases of a changing count.
            timeout_seconds=settings.longest_operation_seconds,
            concurrency=settings.concurrency["writer"],
            unkept="What it cannot execute stays on its queue, and becomes a dead letter in the end.",
        )

    def _mapping(self, name: str, queue: sqs.Queue, most: int) -> None:
        mapping = lambda_.EventSourceMapping(
            self,
            f"{name}Mapping",
            target=self.worker.live,
            event_source_arn=queue.queue_arn,
            batch_size=MESSAGES,
            max_concurrency=most,
            report_batch_item_failures=True,
        )
        acknowledge(
            mapping,
            "Serverless::Serverless-LambdaEventSourceMappingDestination",
            "A queue has dead letters of its own: SQS has no such destination.",
        )
        # Lambda refuses the mapping while the role may not read the queue.
        mapping.node.add_dependency(self.worker.role)
