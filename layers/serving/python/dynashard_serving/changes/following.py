"""Who follows the changes of this backend's items."""

from collections.abc import Iterator

from dynashard import Dynashard
from dynashard_patterns.changes import Consumer
from dynashard_serving.discovery import Declarations
from dynashard_serving.events.publishing import Publish


def consumers(db: Dynashard, declarations: Declarations, publish: Publish) -> Iterator[Consumer]:
    """Those that the domain declares: its copies, its roll-ups, and its events, which `publish` sends."""
    for copies in declarations.copies:
        yield copies.consumer(db)
    for roll_ups in declarations.roll_ups:
        yield roll_ups.consumer(db)
    for events in declarations.events:
        yield events.consumer(publish)
