"""What is accepted now and done later, where there are queues: operations of a resource that answer 202."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler import Response

from functions.api.backend import Backend
from functions.api.incoming import Incoming
from functions.api.outbox import Outbox
from functions.api.queued import Queued
from functions.api.resource import Resource
from functions.api.settings import Settings

Operation = Callable[[Incoming], Response[Any]]
Operations = Mapping[str, tuple[str, Operation]]
"""Operations by their names, each with its method."""


@dataclass(frozen=True, slots=True)
class Later:
    """Takes the place of operations that can be done later.

    Args:
        backend: the entities.
        outbox: the way to the queues.
        queue_url: the queue of what is only added.
        clock: epoch seconds.
    """

    backend: Backend
    outbox: Outbox
    queue_url: str
    clock: Callable[[], float]

    def of(self, resource: Resource, operations: Operations) -> Operations:
        """The operations of a resource, with those in place that accept instead of do."""
        if resource.queued and "create" in operations:
            check = self.backend.repository(resource.entity).check
            queued = Queued(resource, check, self.outbox, self.queue_url, self.clock)
            return {**operations, "create": ("POST", queued.create)}
        return operations


def later_of(settings: Settings, backend: Backend, outbox: Outbox, clock: Callable[[], float]) -> Later | None:
    """What accepts for later, if the settings name queues."""
    if settings.queue_url is None:
        return None
    return Later(backend, outbox, settings.queue_url, clock)
