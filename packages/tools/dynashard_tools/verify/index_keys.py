"""Checks that the index keys of stored items match their fields."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from dynashard.backfills.index_keys import index_keys_write, wrong_index_keys
from dynashard.entity import EntityDefinition
from dynashard.errors import ConditionFailedError, TransactionConflictError, UndecodableItemError
from dynashard.repository import Store
from dynashard.repository.conditions import is_live
from dynashard.repository.late import stored_at
from dynashard.schema import PK, SK
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
        return wrong_index_keys(self.store.router, entity, item, entity.indexes.values())

    def _write(self, item: Wire, differs: dict[str, Wire | None]) -> bool:
        write = index_keys_write(self.store.table, item, differs)
        try:
            self.store.transport.call(write.operation, write.request)
        except (ConditionFailedError, TransactionConflictError):
            return False
        return True


def _text(value: Wire | None) -> str:
    return "absent" if value is None else repr(value["S"])
