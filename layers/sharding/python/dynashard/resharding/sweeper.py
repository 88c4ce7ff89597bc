"""Clearing places that are nobody's home: relocation markers are deleted, and live items are brought home."""

from collections.abc import Sequence
from typing import Final

from dynashard.errors import DynashardError
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.resharding.mover import Mover
from dynashard.resharding.progress import Pass
from dynashard.resharding.relocation import Homes, Work
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, REV, SK, TYPE
from dynashard.transport.interface import Call, Wire

_READ: Final = f"{PK}, {SK}, {MOVED_TO}, {EXPIRES_AT}, {REV}, #type"


class Sweeper(Work):
    """Deletes the markers of a change, and brings home what was stored at an old home later than anybody waited.

    Before a change begins it does the same at the new homes (`Pass.CHECK`), where nothing may stand yet.

    A live item that stands unmarked at an old home in this phase was never seen by a reader, nor acknowledged to its
    writer: the second pass has moved all others. So it may be moved while its home is empty. Otherwise it stays, and
    is counted as `left`.

    Costs 1 write unit for every 1 KB of a marker; an item that is brought home costs what the mover takes for it,
    and its marker.
    """

    def __init__(self, context: Context, job: Job, homes: Homes) -> None:
        self._table = context.table
        self._family = job.family
        self._homes = homes
        self._checks = job.kind is Pass.CHECK
        self._target = {"N": str(job.change.target)}
        self._mover = Mover(context, job, homes, yields=not self._checks)
        self.reading: Wire = {
            "ConsistentRead": True,
            "ProjectionExpression": _READ,
            "ExpressionAttributeNames": {"#type": TYPE},
        }

    def counts_as(self, item: Wire) -> str:
        """Markers are swept; live items were stored late."""
        return "swept" if MOVED_TO in item else "late"

    def concerns(self, item: Wire) -> bool:
        """Whether an item is a marker of this change, or stands at a place that is not its home."""
        if MOVED_TO not in item:
            return self._mover.concerns(item)
        if self._checks:
            return self._homes.new_home(item) is not None
        if item.get(MOVED_TO) != self._target or not self._family.has(item):
            return False
        return self._homes.partition(item[PK]["S"]) is not None

    def write(self, item: Wire) -> Call:
        """The deletion of a marker, or the transaction that brings an item home and leaves a marker."""
        if MOVED_TO not in item:
            return self._mover.write(item)
        request = {
            "TableName": self._table,
            "Key": {PK: item[PK], SK: item[SK]},
            "ConditionExpression": f"{MOVED_TO} = :target",
            "ExpressionAttributeValues": {":target": item[MOVED_TO]},
        }
        return Call("DeleteItem", request)

    def in_two_writes(self, item: Wire) -> bool:
        """A live item is read whole and moved, which leaves a marker that goes next; of markers the keys are enough.

        The marker is not deleted at once: consumers of the table's stream would take that for the deletion of the item.
        """
        return MOVED_TO not in item

    def failed(self, error: DynashardError, items: Sequence[Wire]) -> Sequence[Wire]:
        """The items whose home is taken. A marker that is gone was deleted by another sweeper."""
        return self._mover.failed(error, [item for item in items if MOVED_TO not in item])
