"""Checks that the unique values of items are reserved for them, and that no reservation is left over."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.entity.uniqueness import UniqueDefinition, kinds_of
from dynashard.repository.conditions import is_live
from dynashard.repository.reservations import has
from dynashard.routing import logical_partition_of
from dynashard.schema import PK, SK, TYPE
from dynashard.service import Dynashard
from dynashard.transactions.reservation_repair import ReservationRepair, Reserved
from dynashard.transport.interface import Wire
from dynashard_tools.verify.findings import Change, Finding, Kind
from dynashard_tools.verify.parts import Check, Part

_AT_A_TIME: Final = 100


def reservation_kinds(entities: Iterable[EntityDefinition[Any]]) -> dict[str, EntityDefinition[Any]]:
    """Return the entities by the `Type` of their reservations."""
    return {kind: entity for entity in entities for kind in kinds_of(entity)}


@dataclass
class UniqueCheck(Check):
    """Compares items of one entity with their reservations, and reservations with their owners.

    What looks wrong is read again at the end, because a write may have come between the two halves.

    Cost: 1 read unit for each reservation that an item should have, and for each that is stored 1 for every 4 KB of its
    owner; 1 round trip for 100.
    """

    part: ClassVar[Part] = Part.UNIQUE
    reads_items: ClassVar[bool] = True
    repairs: ClassVar[str] = "reserve unique values for the items that have them, and free values that no item has"

    db: Dynashard
    entity: EntityDefinition[Any]
    mend: bool = False
    _items: dict[ItemKey, Wire] = field(default_factory=dict)
    _rows: dict[str, Wire] = field(default_factory=dict)
    _lacking: dict[ItemKey, None] = field(default_factory=dict)
    _left_over: dict[str, Wire] = field(default_factory=dict)
    _nameless: dict[str, None] = field(default_factory=dict)
    _compared: int = 0

    def __post_init__(self) -> None:
        self._repair = ReservationRepair(self.db.store, self.entity)
        self._kinds = kinds_of(self.entity)

    def note(self, entity: EntityDefinition[Any], item: Wire) -> None:
        """Compare a stored item with its reservations, a hundred at a time."""
        if entity is self.entity and is_live(item, self.db.store.now()):
            self._items[ItemKey(logical_partition_of(entity, item[PK]["S"]), item[SK]["S"])] = item
            if len(self._items) >= _AT_A_TIME:
                self._compare_items()

    def support(self, row: Wire) -> None:
        """Compare a stored reservation with its owner, a hundred at a time."""
        if row[TYPE]["S"] in self._kinds:
            self._rows[row[PK]["S"]] = row
            if len(self._rows) >= _AT_A_TIME:
                self._compare_rows()

    def finish(self, advance: Callable[[int], None]) -> Iterator[Finding]:
        """Find values that are not reserved for their item, and reservations without an item."""
        self._compare_items()
        self._compare_rows()
        advance(self._compared)
        for key in self._lacking:
            item = self._repair.current(key)
            lacking = {} if item is None else self._repair.lacking({key: item})
            if item is not None and lacking:
                yield from self._unreserved(key, item, lacking[key])
        for place in self._nameless:
            found = self._repair.still_nameless(place)
            if found is not None:
                yield self._discarded(place, found)
        for place, row in self._left_over.items():
            for owner in self._repair.left_over([row]).values():
                yield self._freed(place, self._kinds[row[TYPE]["S"]], owner)

    def _compare_items(self) -> None:
        self._lacking |= dict.fromkeys(self._repair.lacking(self._items))
        self._compared += len(self._items)
        self._items.clear()

    def _compare_rows(self) -> None:
        self._nameless |= dict.fromkeys(self._repair.nameless(self._rows.values()))
        self._left_over |= {place: self._rows[place] for place in self._repair.left_over(self._rows.values())}
        self._compared += len(self._rows)
        self._rows.clear()

    def _unreserved(self, key: ItemKey, item: Wire, lacking: list[Reserved]) -> Iterator[Finding]:
        where = f"{key.partition} / {key.sort}"
        left = self._repair.reserve(key, item, lacking).left if self.mend else lacking
        for each in lacking:
            names = ", ".join(each.unique.fields)
            if each.owner != key and self._has(each):
                detail = f"{each.owner.partition} / {each.owner.sort} has the same {names}: " if each.owner else ""
                yield Finding(Kind.NOT_UNIQUE, where, f"{detail}change one of both, and verify again")
            else:
                change = {each.place: Change(None, {"M": {PK: {"S": key.partition}, SK: {"S": key.sort}}})}
                mended = each.place not in {one.place for one in left}
                yield Finding(
                    Kind.UNRESERVED, where, f"its {names} is not reserved for it", mended=mended, changes=change
                )

    def _has(self, each: Reserved) -> bool:
        """Whether the owner of a reservation is live and has its value."""
        owner = None if each.owner is None else self._repair.current(each.owner)
        return owner is not None and has(self.entity, owner, each.place)

    def _discarded(self, place: str, found: Wire) -> Finding:
        detail = "it names no owner, because another program has written it"
        mended = self.mend and self._repair.discard(found)
        return Finding(Kind.RESERVATION, place, detail, mended=mended, changes={place: Change({"M": found}, None)})

    def _freed(self, place: str, unique: UniqueDefinition, owner: ItemKey) -> Finding:
        names = ", ".join(unique.fields)
        detail = f"no item has the {names} that is reserved for {owner.partition} / {owner.sort}"
        mended = self.mend and self._repair.free(place, unique, owner)
        change = {place: Change({"M": {PK: {"S": owner.partition}, SK: {"S": owner.sort}}}, None)}
        return Finding(Kind.RESERVATION, place, detail, mended=mended, changes=change)
