"""Writing the index keys that stored items lack, and those that contradict their fields."""

from collections.abc import Iterable
from typing import Any

from dynashard.backfills.work import BackfillWork
from dynashard.entity import Entity, EntityDefinition, IndexDefinition, ItemKey
from dynashard.repository import Store
from dynashard.repository.conditions import unchanged
from dynashard.resharding.scope import Family
from dynashard.routing import Router, logical_partition_of
from dynashard.schema import PK, SK, index_pk, index_sk
from dynashard.topology.backfilled import index_goal
from dynashard.transport.interface import Call, Wire


def wrong_index_keys(
    router: Router, entity: EntityDefinition[Any], item: Wire, indexes: Iterable[IndexDefinition]
) -> dict[str, Wire | None]:
    """Return the correct values of wrong index attributes of a stored item; None for those to remove.

    Other slots belong to indexes that only another version declares. Raises `UndecodableItemError` if the item does not
    fit its entity.
    """
    decoded: Entity = entity.decode(item)
    key = ItemKey(logical_partition_of(entity, item[PK]["S"]), item[SK]["S"])
    wanted: Wire = {}
    names: list[str] = []
    for index in indexes:
        stored = item.get(index_pk(index.slot))
        names += [index_pk(index.slot), index_sk(index.slot)]
        wanted |= router.index_attributes(entity, index, key, decoded.__dict__)
        if stored is not None and stored["S"] in router.index_homes(entity, index, key, decoded.__dict__):
            # It was written before the index grew for new entries alone.
            wanted[index_pk(index.slot)] = stored
    return {name: wanted.get(name) for name in names if item.get(name) != wanted.get(name)}


def index_keys_write(table: str, item: Wire, differs: dict[str, Wire | None]) -> Call:
    """Return the update that writes index keys of an item in place. The revision stays, because no field changes."""
    values = {f":{name}": value for name, value in differs.items() if value is not None}
    gone = [name for name, value in differs.items() if value is None]
    expression = f"SET {', '.join(f'{name[1:]} = {name}' for name in values)} " if values else ""
    expression += f"REMOVE {', '.join(gone)}" if gone else ""
    request: Wire = {"TableName": table, "Key": {PK: item[PK], SK: item[SK]}}
    request |= {"UpdateExpression": expression} | ({"ExpressionAttributeValues": values} if values else {})
    return Call("UpdateItem", unchanged(item).on(request))


class IndexBuild(BackfillWork):
    """Gives every item the keys of one index that its fields make.

    Costs 1 write unit for every 1 KB of an item whose keys are missing or wrong, and as many in the index.
    """

    write_units = 2.0

    def __init__(self, store: Store, entity: EntityDefinition[Any], family: Family, index: IndexDefinition) -> None:
        super().__init__(store, entity, family)
        self.goal = index_goal(entity, index)
        self._index = index

    def needed(self, item: Wire) -> bool:
        """Whether an item lacks keys of the index, or has others than its fields make."""
        return bool(self._differs(item))

    def write(self, item: Wire) -> Call:
        """Return the update that writes its index keys."""
        return index_keys_write(self.store.table, item, self._differs(item))

    def _differs(self, item: Wire) -> dict[str, Wire | None]:
        return wrong_index_keys(self.store.router, self.entity, item, [self._index])
