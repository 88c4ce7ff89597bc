"""Deleting the marks that a change has left."""

from collections.abc import Sequence
from typing import Final

from dynashard.errors import DynashardError
from dynashard.resharding.homes import Homes
from dynashard.resharding.job import Job
from dynashard.resharding.means import Means
from dynashard.schema import MOVED_TO, PK, SK, TYPE
from dynashard.transport.interface import Call, Wire

_READ: Final = f"{PK}, {SK}, {MOVED_TO}, #type"


class Sweeper:
    """Deletes the marks of a change, and nothing else. Costs 1 write unit for every 1 KB of a mark."""

    counter = "swept"

    def __init__(self, means: Means, job: Job, homes: Homes) -> None:
        self._table = means.table
        self._family = job.family
        self._homes = homes
        self._target = {"N": str(job.change.target)}
        self.reading: Wire = {
            "ConsistentRead": True,
            "FilterExpression": f"{MOVED_TO} = :target",
            "ProjectionExpression": _READ,
            "ExpressionAttributeNames": {"#type": TYPE},
            "ExpressionAttributeValues": {":target": self._target},
        }

    def concerns(self, item: Wire) -> bool:
        """Whether an item is a mark of this change."""
        if item.get(MOVED_TO) != self._target or not self._family.has(item):
            return False
        return self._homes.partition(item[PK]["S"]) is not None

    def write(self, item: Wire) -> Call:
        """Its deletion."""
        request = {
            "TableName": self._table,
            "Key": {PK: item[PK], SK: item[SK]},
            "ConditionExpression": f"{MOVED_TO} = :target",
            "ExpressionAttributeValues": {":target": self._target},
        }
        return Call("DeleteItem", request)

    def failed(self, error: DynashardError, items: Sequence[Wire]) -> None:
        """A mark that is gone was deleted by another sweeper: nothing to object to."""
