"""Checks that items are at their homes, and that no relocation markers are left over."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import ConditionFailedError, TransactionCanceledError, TransactionConflictError
from dynashard.repository import Store
from dynashard.repository.conditions import is_live, is_marker, moved_to
from dynashard.repository.late import stored_at
from dynashard.repository.markers import relocation
from dynashard.repository.reservations import held
from dynashard.routing import home, logical_partition_of, shard_keys, wire_key
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.topology import Record
from dynashard.transport.interface import Wire
from dynashard_tools.verify.findings import Change, Finding, Kind
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.stored import key_text
from dynashard_tools.verify.topology_records import TopologyRecords

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class HomesCheck(Check):
    """Compares stored items with their homes.

    An item that looks wrong is read again, with the topology table as it is then, before it is reported. An item is
    moved home only while its home is empty. That is safe: its write was not acknowledged, and no reader has seen it.
    """

    part: ClassVar[Part] = Part.ITEMS
    reads_items: ClassVar[bool] = True
    repairs: ClassVar[str] = "move items to their homes, and delete relocation markers of resizes that have ended"

    store: Store
    records: TopologyRecords
    mend: bool = False

    def look(self, entity: EntityDefinition[Any], item: Wire) -> Iterator[Finding]:
        """Find faults of an item's place. Cost: none if it is right; else 4 read units, and the repair."""
        if not self._wrong(entity, item, fresh=False):
            return
        now = stored_at(self.store, item[PK]["S"], item[SK]["S"])
        if now is None or not self._wrong(entity, now, fresh=True):
            return
        if not entity.rule.fixed:
            yield Finding(Kind.AWAY, key_text(now), "it is in a shard that readers do not read")
            return
        yield self._marker(entity, now) if is_marker(now) else self._away(entity, now)

    def _wrong(self, entity: EntityDefinition[Any], item: Wire, *, fresh: bool) -> bool:
        partition = logical_partition_of(entity, item[PK]["S"])
        record = self.records.record(entity, partition, fresh=fresh)
        if self._moving(record):
            return False
        if is_marker(item):
            return True
        if not is_live(item, self.store.now()):
            return False
        count, place = self.records.count(entity, partition, item[SK]["S"], fresh=fresh), item[PK]["S"]
        if not entity.rule.fixed:
            return place not in shard_keys(entity.rule, partition, entity.separator, count)
        return bool(place != home(entity, ItemKey(partition, item[SK]["S"]), count))

    def _moving(self, record: Record | None) -> bool:
        return record is not None and (record.busy or "back_to" in record.resize)

    def _home(self, entity: EntityDefinition[Any], item: Wire) -> tuple[str, int]:
        partition = logical_partition_of(entity, item[PK]["S"])
        count = self.records.count(entity, partition, item[SK]["S"], fresh=True)
        return home(entity, ItemKey(partition, item[SK]["S"]), count), count

    def _away(self, entity: EntityDefinition[Any], item: Wire) -> Finding:
        place, count = self._home(entity, item)
        there = stored_at(self.store, place, item[SK]["S"])
        if is_live(there, self.store.now()):
            detail = f"its home {place} has another live item: compare both, and delete one of them"
            return Finding(Kind.DOUBLE, key_text(item), detail)
        others = self._strays(entity, item)
        if others:
            detail = f"its home {place} is empty, and another live item of its key is at {', '.join(others)}: "
            return Finding(Kind.DOUBLE, key_text(item), f"{detail}compare them, and delete all but one")
        detail = f"its home is {place}, which is empty"
        mended = self.mend and self._bring(entity, item, place, count)
        return Finding(Kind.AWAY, key_text(item), detail, mended=mended, changes={PK: Change(item[PK], {"S": place})})

    def _strays(self, entity: EntityDefinition[Any], item: Wire) -> list[str]:
        """Where else live items with the key of an item are stored. Cost: 1 read unit for each possible place."""
        places = self.records.places(entity, logical_partition_of(entity, item[PK]["S"]))
        sort, now = item[SK]["S"], self.store.now()
        found = {place: stored_at(self.store, place, sort) for place in places if place != item[PK]["S"]}
        return [place for place, each in found.items() if is_live(each, now)]

    def _bring(self, entity: EntityDefinition[Any], item: Wire, place: str, count: int) -> bool:
        """Bring an item home, and delete the marker that stays behind; whether that was done.

        It is not done if one of its unique values was reserved for another item since.
        """
        actions = relocation(self.store.table, item, place, origin=count, target=count, now=self.store.runtime.clock())
        actions += held(self.store.table, entity, item)
        return self._transact(actions) and self._delete(item[PK]["S"], item[SK]["S"], str(count))

    def _marker(self, entity: EntityDefinition[Any], mark: Wire) -> Finding:
        place, count = self._home(entity, mark)
        sort, stored = mark[SK]["S"], mark[PK]["S"]
        if stored != place:
            detail = f"it points to {moved_to(mark)} shards, and the resize has ended"
            mended = self.mend and self._delete(stored, sort, mark[MOVED_TO]["N"])
            return Finding(Kind.MARKER, key_text(mark), detail, mended=mended, changes=_removed(mark))
        partition = logical_partition_of(entity, stored)
        target = home(entity, ItemKey(partition, sort), moved_to(mark))
        item = None if target == stored else stored_at(self.store, target, sort)
        if item is None or not is_live(item, self.store.now()):
            detail = "it is at the home of its key, and there is no item where it points to"
            mended = self.mend and self._delete(stored, sort, mark[MOVED_TO]["N"])
            return Finding(Kind.LOST_TARGET, key_text(mark), detail, mended=mended, changes=_removed(mark))
        detail = f"it is at the home of its key, whose item is at {target}"
        mended = self.mend and self._return(mark, item, count)
        changes = {PK: Change(item[PK], mark[PK])}
        return Finding(Kind.LOST_TARGET, key_text(mark), detail, mended=mended, changes=changes)

    def _return(self, mark: Wire, item: Wire, count: int) -> bool:
        """Bring an item back over the marker at its home."""
        marker, copy = relocation(
            self.store.table, item, mark[PK]["S"], origin=count, target=count, now=self.store.runtime.clock()
        )
        put = {
            **copy["Put"],
            "ConditionExpression": f"{MOVED_TO} = :met",
            "ExpressionAttributeValues": {":met": mark[MOVED_TO]},
        }
        done = self._transact([marker, {"Put": put}])
        return done and self._delete(item[PK]["S"], item[SK]["S"], str(count))

    def _transact(self, actions: list[Wire]) -> bool:
        pauses = self.store.retry_policy.pauses()
        for _ in range(_TRIES):
            try:
                self.store.transport.call("TransactWriteItems", {"TransactItems": actions})
            except TransactionCanceledError:
                return False
            except TransactionConflictError:
                next(pauses, None)
                continue
            return True
        return False

    def _delete(self, place: str, sort: str, target: str) -> bool:
        request = {
            "TableName": self.store.table,
            "Key": wire_key((place, sort)),
            "ConditionExpression": f"{MOVED_TO} = :target",
            "ExpressionAttributeValues": {":target": {"N": target}},
        }
        try:
            self.store.transport.call("DeleteItem", request)
        except ConditionFailedError:
            return False
        return True


def _removed(mark: Wire) -> dict[str, Change]:
    return {name: Change(mark[name], None) for name in (PK, SK, MOVED_TO)}
