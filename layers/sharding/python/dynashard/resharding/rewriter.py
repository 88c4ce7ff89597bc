"""The rewriter: changes the count of an index by rewriting the index keys of items in place."""

from dynashard.entity import IndexDefinition, ItemKey
from dynashard.repository.conditions import Condition, unchanged
from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.resharding.relocation import Work
from dynashard.routing import index_home, logical_partition_of
from dynashard.schema import MOVED_TO, PK, SK, index_pk, index_sk
from dynashard.transport.interface import Call, Wire


class Rewriter(Work):
    """Gives the items of a family the index keys of the new count. Their revisions stay, because no field changes.

    Costs 1 write unit for every 1 KB of the item, and 2 in the index for the old and the new entry.
    """

    def __init__(self, context: Context, job: Job) -> None:
        slot = job.scope.index.slot if job.scope.index else ""
        self._table = context.table
        self._family = job.family
        self._count = job.resize.target
        self._pk, self._sk = index_pk(slot), index_sk(slot)
        self._indexes = {
            member.name: index
            for member in job.family.members
            for index in member.indexes.values()
            if index.slot == slot and index.shards
        }
        present = f"attribute_exists({self._pk}) AND attribute_not_exists({MOVED_TO})"
        self.reading: Wire = {"ConsistentRead": True, "FilterExpression": present}

    def concerns(self, item: Wire) -> bool:
        """Whether the new count gives an item another key in the index."""
        if MOVED_TO in item or self._pk not in item or self._sk not in item or not self._family.has(item):
            return False
        new = self._new(item)
        return new is not None and new != item[self._pk]["S"]

    def write(self, item: Wire) -> Call:
        """Return the update that rewrites its index key."""
        values = {":old": item[self._pk], ":sort": item[self._sk]}
        still = unchanged(item) & Condition(f"{self._pk} = :old AND {self._sk} = :sort", values)
        request = {
            "TableName": self._table,
            "Key": {PK: item[PK], SK: item[SK]},
            "UpdateExpression": f"SET {self._pk} = :new",
            "ExpressionAttributeValues": {":new": {"S": self._new(item) or ""}},
        }
        return Call("UpdateItem", still.on(request))

    def _new(self, item: Wire) -> str | None:
        member = self._family.member_of(item)
        index = self._indexes.get(member.name) if member else None
        if member is None or index is None:
            return None
        entry = ItemKey(index_partition(index, item[self._pk]["S"]), item[self._sk]["S"])
        key = ItemKey(logical_partition_of(member, item[PK]["S"]), item[SK]["S"])
        return index_home(index, entry, key, self._count)


def index_partition(index: IndexDefinition, stored: str) -> str:
    """The logical index partition of a stored index key, be it a shard's or one from before it was sharded."""
    divisions = f"{index.prefix}{index.separator}{index.partition.literals()}".count(index.separator)
    return stored if stored.count(index.separator) == divisions else stored.rpartition(index.separator)[0]
