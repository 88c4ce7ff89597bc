"""Who follows the changes of this backend's items."""

from collections.abc import Iterator

from dynashard import Dynashard
from dynashard_patterns.changes import Consumer
from dynashard_serving.discovery import Declarations


def consumers(db: Dynashard, declarations: Declarations) -> Iterator[Consumer]:
    """Those that the domain declares: its copies, and its roll-ups."""
    for copies in declarations.copies:
        yield copies.consumer(db)
    for roll_ups in declarations.roll_ups:
        yield roll_ups.consumer(db)
