"""Which items of a change have another home after it, and what a pass does about them."""

from collections.abc import Sequence

from dynashard.entity import ItemKey
from dynashard.errors import DynashardError
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.routing import home, logical_partition_of
from dynashard.schema import PK, SK
from dynashard.topology import partition_key
from dynashard.transport.interface import Call, Wire


class Work:
    """What a pass does with items.

    Attributes:
        reading: how it reads them.
        counter: what items that were dealt with are counted as: the name of a field of `Progress`.
    """

    reading: Wire
    counter: str = "moved"

    def concerns(self, item: Wire) -> bool:
        """Whether there is anything to do about a stored item."""
        raise NotImplementedError

    def write(self, item: Wire) -> Call:
        """What to send for it."""
        raise NotImplementedError

    def counts_as(self, item: Wire) -> str:  # noqa: ARG002 - mostly all items are counted alike
        """What an item that was dealt with is counted as."""
        return self.counter

    def in_two_writes(self, item: Wire) -> bool:  # noqa: ARG002 - mostly one write does it
        """Whether an item was read in part and must be read whole before its write, and again for a second write."""
        return False

    def failed(self, error: DynashardError, items: Sequence[Wire]) -> Sequence[Wire]:  # noqa: ARG002 - mostly none
        """Look at why writes were refused: the items that stay as they are, because trying again cannot help.

        Raises:
            TakenError: somebody has to decide.
        """
        return ()


class Homes:
    """Which items of a change have another home after it.

    Attributes:
        change: the id of the change.
    """

    def __init__(self, context: Context, job: Job) -> None:
        self.change = job.change.id
        self._job = job
        self._own: frozenset[str] = frozenset()
        if job.scope.whole_family:
            self._own = frozenset(record.key for record in context.topology.own(job.scope.family))

    def partition(self, stored: str) -> str | None:
        """The logical partition of a stored partition key, if the change concerns it."""
        entity = self._job.scope.entity
        logical = logical_partition_of(entity, stored)
        if self._job.scope.partition is not None:
            return logical if logical == self._job.scope.partition else None
        return None if partition_key(entity, logical) in self._own else logical

    def new_home(self, item: Wire) -> str | None:
        """The stored partition key where an item belongs after the change.

        None if it stays, or does not belong where it stands: a copy that was moved already.
        """
        job = self._job
        if not job.family.has(item):
            return None
        stored = item[PK]["S"]
        partition = self.partition(stored)
        if partition is None:
            return None
        key = ItemKey(partition, item[SK]["S"])
        entity = job.scope.entity
        if home(entity, key, job.change.origin) != stored:
            return None
        new = home(entity, key, job.change.target)
        return None if new == stored else new
