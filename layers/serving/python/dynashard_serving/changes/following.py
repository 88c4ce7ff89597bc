"""Who follows the changes of this backend's items."""

from collections.abc import Iterator

from domain import COPIES, ROLL_UPS
from dynashard import Dynashard
from dynashard_patterns.changes import Consumer


def consumers(db: Dynashard) -> Iterator[Consumer]:
    """Those that the domain declares: its copies, and its roll-ups."""
    for copies in COPIES:
        yield copies.consumer(db)
    for roll_ups in ROLL_UPS:
        yield roll_ups.consumer(db)
