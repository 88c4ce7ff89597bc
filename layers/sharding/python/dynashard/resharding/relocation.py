"""Which items of a resize have another home after it, and what a pass does about them."""

from dynashard.entity import ItemKey, expiry
from dynashard.errors import DynashardError
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.routing import home, logical_partition_of
from dynashard.schema import EXPIRES_AT, PK, SK
from dynashard.topology import partition_key
from dynashard.transport.interface import Call, Wire


class Work:
    """What a pass does with items, which it reads with the parameters of `reading`, and counts as `counter`."""

    reading: Wire
    counter: str = "moved"

    def concerns(self, item: Wire) -> bool:
        """Whether a stored item needs a write."""
        raise NotImplementedError

    def write(self, item: Wire) -> Call:
        """Return the request for it."""
        raise NotImplementedError

    def counts_as(self, item: Wire) -> str:  # noqa: ARG002 - most passes count all items alike
        """Return the counter of an item that is done."""
        return self.counter

    def refuses(self, item: Wire) -> bool:  # noqa: ARG002 - most passes can write for every item that concerns them
        """Whether no write for an item can be made, so that it stays as it is."""
        return False

    def in_two_writes(self, item: Wire) -> bool:  # noqa: ARG002 - most passes write once
        """Whether an item was read in part and must be read whole before its write, and again for a second write."""
        return False

    def stays(self, item: Wire, error: DynashardError) -> bool:  # noqa: ARG002
        """Whether an item stays after this error, because no later write can succeed; `TakenError` asks an operator."""
        return False


class Homes:
    """Which items of a resize, named by its id, have another home after it."""

    def __init__(self, context: Context, job: Job) -> None:
        self.resize = job.resize.id
        self._context = context
        self._job = job
        self._own: frozenset[str] | None = None

    def partition(self, stored: str) -> str | None:
        """Return the logical partition of a stored partition key, if the resize concerns it."""
        scope = self._job.scope
        logical = logical_partition_of(scope.entity, stored)
        if scope.partition is not None:
            return logical if logical == scope.partition else None
        return None if scope.whole_family and self._has_own_count(logical) else logical

    def new_home(self, item: Wire) -> str | None:
        """Return the stored partition key of an item after the resize; None if it stays, or is a copy already moved."""
        job = self._job
        if not job.family.has(item):
            return None
        stored = item[PK]["S"]
        partition = self.partition(stored)
        if partition is None:
            return None
        key = ItemKey(partition, item[SK]["S"])
        entity = job.scope.entity
        if home(entity, key, job.resize.origin) != stored:
            return None
        new = home(entity, key, job.resize.target)
        return None if new == stored else new

    def _has_own_count(self, partition: str) -> bool:
        if self._own is None:
            # No lock: reading this twice is cheaper than waiting for another thread.
            own = self._context.topology.own(self._job.scope.family)
            self._own = frozenset(record.key for record in own)
        return partition_key(self._job.scope.entity, partition) in self._own


def expired(item: Wire, by: float) -> bool:
    """Whether a stored item has expired by a time, in epoch seconds."""
    return EXPIRES_AT in item and (ends := expiry(item)) is not None and ends <= by
