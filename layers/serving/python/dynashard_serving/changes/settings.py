"""The settings of the function."""

from typing import Annotated

from dynashard_serving.settings import TableSettings, Variable


class Settings(TableSettings, frozen=True, kw_only=True):
    """Settings of the function.

    Attributes:
        dead_letter_queue: the URL of the queue for changes that cannot be handled.
        event_bus: the name or the ARN of the bus for the events that the domain declares.
        event_source: the `source` of these events.
    """

    dead_letter_queue: Annotated[str, Variable("DEAD_LETTER_QUEUE")]
    event_bus: Annotated[str, Variable("EVENT_BUS")] = "default"
    event_source: Annotated[str, Variable("EVENT_SOURCE")] = "dynashard"
