"""Checks that the index keys of stored items match their fields."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from dynashard.entity import Entity, EntityDefinition, ItemKey
from dynashard.errors import ConditionFailedError, TransactionConflictError, UndecodableItemError
from dynashard.repository import Store
from dynashard.repository.conditions import is_live, unchanged
from dynashard.repository.late import stored_at
from dynashard.routing import logical_partition_of
from dynashard.schema import PK, SK, index_pk, index_sk
from dynashard.transport.interface import Wire
from dynashard_tools.verify.findings import Change, Finding, Kind
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.stored import key_text
from dynashard_tools.verify.topology_records import TopologyRecords


@dataclass(frozen=True, slots=True)
class IndexKeysCheck(Check):
    """Compares the index keys of stored items with their fields. Skips indexes whose shard count is changing."""

    part: ClassVar[Part] = Part.INDEX
    reads_items: ClassVar[bool] = True
    repairs: ClassVar[str] = "write index keys anew"

    store: Store
    records: TopologyRecords
    mend: bool = False

    def look(self, entity: EntityDefinition[Any], item: Wire) -> Iterator[Finding]:
        """Find faults of an item's index keys. Cost: none if they are right; else 3 read units, and the repair."""
        if not is_live(item, self.store.now()) or not self._differs(entity, item):
            return
        now = stored_at(self.store, item[PK]["S"], item[SK]["S"])
        if now is None or not is_live(now, self.store.now()) or self.records.index_changing(entity):
            return
        # It was decoded when it was read first; it may have been replaced since.
        with suppress(UndecodableItemError):
            differs = self._differs(entity, now)
            if differs:
                detail = ", ".join(f"{name} should be {_text(value)}" for name, value in differs.items())
                changes = {name: Change(now.get(name), value) for name, value in differs.items()}
                mended = self.mend and self._write(now, differs)
                yield Finding(Kind.INDEX, key_text(now), detail, mended=mended, changes=changes)

    def _differs(self, entity: EntityDefinition[Any], item: Wire) -> dict[str, Wire | None]:
        """Return the correct values of wrong index attributes; None for those to remove."""
        decoded: Entity = entity.decode(item)
        key = ItemKey(logical_partition_of(entity, item[PK]["S"]), item[SK]["S"])
        wanted: Wire = {}
        for index in entity.indexes.values():
            router, stored = self.store.router, item.get(index_pk(index.slot))
            wanted |= router.index_attributes(entity, index, key, decoded.__dict__)
            if stored is not None and stored["S"] in router.index_homes(entity, index, key, decoded.__dict__):
                # It was written before the index grew for new entries alone.
                wanted[index_pk(index.slot)] = stored
        # The other slots belong to indexes that only another version declares.
        slots = [index.slot for index in entity.indexes.values()]
        names = [name(slot) for slot in slots for name in (index_pk, index_sk)]
        return {name: wanted.get(name) for name in names if item.get(name) != wanted.get(name)}

    def _write(self, item: Wire, differs: dict[str, Wire | None]) -> bool:
        """Write index keys in place. The revision stays, because no field changes."""
        values = {f":{name}": value for name, value in differs.items() if value is not None}
        gone = [name for name, value in differs.items() if value is None]
        expression = f"SET {', '.join(f'{name[1:]} = {name}' for name in values)} " if values else ""
        expression += f"REMOVE {', '.join(gone)}" if gone else ""
        request: Wire = {"TableName": self.store.table, "Key": {PK: item[PK], SK: item[SK]}}
        request |= {"UpdateExpression": expression} | ({"ExpressionAttributeValues": values} if values else {})
        try:
            self.store.transport.call("UpdateItem", unchanged(item).on(request))
        except (ConditionFailedError, TransactionConflictError):
            return False
        return True


def _text(value: Wire | None) -> str:
    return "absent" if value is None else repr(value["S"])
