"""What is accepted now and done later, where there are queues: operations of a resource that answer 202."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dynashard_serving.api.asynchronous import Asynchronous
from dynashard_serving.api.queue_sender import QueueSender
from dynashard_serving.api.queued import Queued
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import Response
from dynashard_serving.backend import Backend
from dynashard_serving.operation_records import Operation as Record

Operation = Callable[[ApiRequest], Response[Any]]
Operations = Mapping[str, tuple[str, Operation]]
"""Operations by their names, each with its method."""
WRITES = ("create", "put", "update", "delete")


@dataclass(frozen=True, slots=True)
class Deferred:
    """Takes the place of operations that can be done later.

    Args:
        backend: the entities.
        sender: the way to the queues.
        queue_url: the queue of new items; None if they are stored at once.
        operations_queue_url: the queue of writes that callers do not wait for; None if all are done at once.
        clock: epoch seconds.
    """

    backend: Backend
    sender: QueueSender
    queue_url: str | None
    operations_queue_url: str | None
    clock: Callable[[], float]

    def of(self, resource: Resource, operations: Operations) -> Operations:
        """The operations of a resource, with those in place that accept instead of do, or may do either."""
        taken = {**operations, **self._asynchronous(resource, operations)}
        if resource.queued and self.queue_url is not None and "create" in operations:
            check = self.backend.collection(resource.entity).check
            queued = Queued(resource, check, self.sender, self.queue_url, self.clock)
            taken["create"] = ("POST", queued.create)
        return taken

    def _asynchronous(self, resource: Resource, operations: Operations) -> Operations:
        if self.operations_queue_url is None or not transacted(resource):
            return {}
        accepting = Asynchronous(
            resource,
            self.backend.collection(resource.entity),
            self.backend.collection(Record),
            sender=self.sender,
            queue_url=self.operations_queue_url,
            clock=self.clock,
        )
        return {
            name: (method, accepting.where_preferred(name, perform))
            for name, (method, perform) in operations.items()
            if name in WRITES
        }


def transacted(resource: Resource) -> bool:
    """Whether an item and the record of its operation can be written in one transaction.

    Without that a message that comes twice could be done twice: then the preference is left aside, as RFC 7240 allows,
    and the write is done at once.
    """
    entity = resource.definition
    return not entity.attachments and (entity.shards is None or entity.shards.placement != "random")
