"""The changes stack: consumes the table's stream for what is derived from items: copies, roll-ups, and events."""

from typing import Any, Final

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_events as events
from constructs import Construct

from dynashard_cdk.function import PythonFunction
from dynashard_cdk.permissions import ITEM_ACTIONS, STREAM_ACTIONS, allow
from dynashard_cdk.stack import FunctionStack

BATCH: Final = 100
"""Records a batch."""
ATTEMPTS: Final = 50
"""How often a failed batch is tried again, with growing pauses."""
MOST_HOURS: Final = 12
"""Age at which a record is given up; the stream keeps records for 24 hours."""


class ChangesStack(FunctionStack):
    """Consumes the changes of items; those that could not be handled are in `dead`. Its events are on `bus`."""

    def __init__(self, scope: Construct, construct_id: str, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, purpose="changes", **kwargs)
        self.dead = self.dead_letter_queue("Dead")
        self.bus = self._bus()
        self.follower = self._function()
        self.consume_stream(
            self.follower,
            self.data.stream_arn,
            self.dead,
            batch_size=BATCH,
            parallelization_factor=self.settings.changes.lanes,
            retry_attempts=ATTEMPTS,
            max_record_age=Duration.hours(MOST_HOURS),
        )
        CfnOutput(self, "DeadLetterQueue", value=self.dead.queue_url)
        CfnOutput(self, "EventBus", value=self.bus.event_bus_arn)
        CfnOutput(self, "EventSource", value=self.settings.changes.event_source)

    def _bus(self) -> events.IEventBus:
        """The bus for the events that the domain declares. One without events costs nothing."""
        if (arn := self.settings.changes.event_bus) is not None:
            return events.EventBus.from_event_bus_arn(self, "Bus", arn)
        # Rules of others name it.
        return events.EventBus(self, "Bus", event_bus_name=f"Dynashard-{self.settings.name}")

    def _function(self) -> PythonFunction:
        settings = self.settings
        return self.python_function(
            "Follow",
            "changes",
            "changes",
            environment={
                **self.data.variables,
                "DEAD_LETTER_QUEUE": self.dead.queue_url,
                "EVENT_BUS": self.bus.event_bus_arn,
                "EVENT_SOURCE": settings.changes.event_source,
            },
            statements=[
                *self.data.allow_writing(ITEM_ACTIONS),
                allow(STREAM_ACTIONS, [self.data.stream_arn]),
                allow(["sqs:SendMessage"], [self.dead.queue_arn]),
                allow(["events:PutEvents"], [self.bus.event_bus_arn]),
            ],
            memory_mb=settings.changes.memory_mb,
            # A writer may not outlast the wait between two phases of a changing count.
            timeout_seconds=settings.longest_operation_seconds,
            concurrency=settings.concurrency["changes"],
            unkept="Changes that it cannot handle go to a queue, which rings an alarm.",
        )
