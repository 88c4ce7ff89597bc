"""Reserves the unique values of items that were stored before the fields were declared unique."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dynashard.backfills import Movements, version_of
from dynashard.entity import EntityDefinition, ItemKey, Undecodable
from dynashard.errors import UndecodableItemError
from dynashard.repository.batch import chunks
from dynashard.repository.conditions import is_live
from dynashard.resharding.scope import Family
from dynashard.routing import logical_partition_of
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.service import Dynashard
from dynashard.transactions.reservation_repair import ReservationRepair
from dynashard.transport.interface import Wire, metered
from dynashard_tools.unique.duplicates import Duplicate, Duplicates
from dynashard_tools.verify.stored import ReadPace, whole_table

_AT_A_TIME: Final = 100


@dataclass
class Built:
    """What was done so far.

    Attributes:
        items: how many items were read, to be reserved for.
        reserved: how many reservations were stored.
        left: values that are not reserved for an item, by the fields and its key: another has them too, or the item was
            changed again and again.
    """

    items: int = 0
    reserved: int = 0
    left: list[Duplicate] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self) | {"left": [each._asdict() for each in self.left]}


@dataclass(frozen=True, slots=True)
class Build:
    """Reserves the values of the stored items of an entity, at a bounded rate. It can be interrupted and run again.

    Writers of the declaration must be deployed before: then every later write reserves its own values.

    Attributes:
        family: the entities that share its logical partitions.
        movements: those of its items, after which the table is read again.
        reads: limits the reading of the table.
        writes: limits what is reserved.
        left_out: called with each item that does not fit its declaration, for which nothing is reserved.
        advance: called with the growing result.
    """

    db: Dynashard
    entity: EntityDefinition[Any]
    family: Family
    movements: Movements
    reads: ReadPace
    writes: ReadPace
    left_out: Callable[[Undecodable], None]
    advance: Callable[[Built], None] = lambda _: None

    def duplicates(self) -> list[Duplicate]:
        """Return the items that have the same unique values. Writes nothing. Cost: a consistent read of the table."""
        done = Built()
        with Duplicates(self.entity) as found:
            for items in self._pages():
                for key, item in items.items():
                    found.add(key, item)
                done.items += len(items)
                self.advance(done)
            return list(found.found())

    def run(self) -> Built:
        """Reserve the values of all items. What is reserved already is only read.

        If items moved to other shards meanwhile, the table is read once more, because some may have been missed.

        Cost: a consistent read of the table; for each item 1 read unit, and if its values are not reserved 4 write
        units, 2 more for each further KB of it; 1 round trip for each of these, and 1 for 100 that are reserved.
        """
        done = Built()
        while True:
            family = self.movements.settled()
            assert family is not None  # noqa: S101 - it waits until there is one
            done = self._round(Built(reserved=done.reserved))
            if not self.movements.since(version_of(family)):
                return done

    def _round(self, done: Built) -> Built:
        repair = ReservationRepair(self.db.store, self.entity)
        for items in self._pages():
            for some in chunks(list(items), _AT_A_TIME):
                lacking = repair.lacking({key: items[key] for key in some})
                for key, each in lacking.items():
                    with metered() as meter:
                        found = repair.reserve(key, items[key], each)
                    done.reserved += found.reserved
                    done.left += [
                        Duplicate(one.unique.fields, (f"{key.partition} / {key.sort}",)) for one in found.left
                    ]
                    self.writes.spent(meter.consumed.write_units)
                done.items += len(some)
                self.advance(done)
        return done

    def _pages(self) -> Iterator[dict[ItemKey, Wire]]:
        """The live items of the entity, page by page, by their logical keys."""
        now = self.db.store.now()
        for page in whole_table(self.db.store, self.reads):
            yield {
                ItemKey(logical_partition_of(self.entity, item[PK]["S"]), item[SK]["S"]): item
                for item in page
                if is_live(item, now) and self._is_one(item)
            }

    def _is_one(self, item: Wire) -> bool:
        """Whether a stored item is one of the entity, and fits it."""
        if MOVED_TO in item or not self.family.has(item) or self.family.member_of(item) is not self.entity:
            return False
        try:
            self.entity.decode(item)
        except UndecodableItemError as error:
            self.left_out(Undecodable(item[PK]["S"], item[SK]["S"], str(error)))
            return False
        return True
