"""The sweeper: deletes relocation markers, and brings home items that stand where they do not belong."""

from typing import Final

from dynashard.repository.conditions import is_damaged, moved_to
from dynashard.repository.markers import unmarking
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.resharding.mover import Mover
from dynashard.resharding.progress import Pass
from dynashard.resharding.relocation import Homes
from dynashard.routing import stored_key
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE
from dynashard.transport.interface import Call, Wire

_READ: Final = f"{PK}, {SK}, {MOVED_TO}, {EXPIRES_AT}, {REV}, #type"


class Sweeper(Mover):
    """Deletes the markers of a resize, and moves items that were stored at an old home after the second pass.

    No reader has seen such an item, and its write was not acknowledged, because the second pass has moved all others.
    So it is moved while its home is empty and its unique values are still reserved for it; otherwise it stays, and is
    counted as `left`. Before a resize begins the same is done at the new homes (`Pass.CHECK`), where nothing may stand
    yet.

    Costs 1 write unit for every 1 KB of a marker; for an item, what the mover takes, and its marker.
    """

    def __init__(self, context: Context, job: Job, homes: Homes) -> None:
        super().__init__(context, job, homes)
        self._checks = job.kind is Pass.CHECK
        self.reading: Wire = {
            "ConsistentRead": True,
            "ProjectionExpression": _READ,
            "ExpressionAttributeNames": {"#type": TYPE},
        }

    def counts_as(self, item: Wire) -> str:
        """Return the counter of an item: `swept` for a marker, `late` for any other."""
        return "swept" if MOVED_TO in item else "late"

    def concerns(self, item: Wire) -> bool:
        """Whether an item is a marker of this resize, or has another home."""
        if MOVED_TO not in item:
            return super().concerns(item)
        if is_damaged(item):
            return False
        if self._checks:
            return self._homes.new_home(item) is not None
        if moved_to(item) != self._resize.target or not self._family.has(item):
            return False
        return self._homes.partition(item[PK]["S"]) is not None

    def write(self, item: Wire) -> Call:
        """Return the deletion of a marker, or the transaction that moves an item and leaves a marker."""
        if MOVED_TO not in item:
            return super().write(item)
        return Call("DeleteItem", unmarking(self._context.table, stored_key(item), moved_to(item)))

    def in_two_writes(self, item: Wire) -> bool:
        """Whether it is an item rather than a marker: it is read whole and moved, and its marker is deleted next.

        One write for both would look like the deletion of the item to consumers of the table's stream.
        """
        return MOVED_TO not in item
