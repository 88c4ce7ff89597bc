"""What a backfill does with stored items, and the items for which it cannot do it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dynashard.entity import EntityDefinition, ItemKey, unrevised_problem
from dynashard.errors import UndecodableItemError
from dynashard.repository import Store
from dynashard.repository.conditions import is_live
from dynashard.resharding.relocation import Work
from dynashard.resharding.scope import Family
from dynashard.routing import logical_partition_of
from dynashard.schema import MOVED_TO, PK, SK, TYPE
from dynashard.topology.backfilled import Goal
from dynashard.transport.interface import Wire

MOST_NAMED: Final = 100
"""The most items that a report names. The others are counted."""


class Unfit(NamedTuple):
    """A stored item that a backfill leaves as it is: it does not fit, is away from its home, or is not ours."""

    key: str
    problem: str


class BackfillWork(Work):
    """What a backfill does with the live items of one entity.

    Attributes:
        goal: what is recorded once it is complete.
        write_units: of the smallest write.
        needs_all: whether it is complete only if it has left no item as it was.
        unfit: the items that it has left as they were, the first ones.
    """

    goal: Goal
    write_units: float = 1.0
    needs_all: bool = False

    def __init__(self, store: Store, entity: EntityDefinition[Any], family: Family) -> None:
        self.store, self.entity, self._family = store, entity, family
        self.unfit: dict[tuple[str, str], Unfit] = {}
        self.reading = self._reading("", {}, {})

    def _reading(self, more: str, names: Mapping[str, str], values: Mapping[str, Any]) -> Wire:
        """How the table is read: rows of the entity's type, and adopted ones, which have none."""
        own = "(attribute_not_exists(#type) OR #type = :type)"
        return {
            "ConsistentRead": True,
            "FilterExpression": f"attribute_not_exists({MOVED_TO}) AND {own}{more}",
            "ExpressionAttributeNames": {"#type": TYPE, **names},
            "ExpressionAttributeValues": {":type": {"S": self.entity.name}, **values},
        }

    def concerns(self, item: Wire) -> bool:
        """Whether a stored item needs a write, or is one for which it cannot be said."""
        if not is_live(item, self.store.now()) or not self._family.has(item):
            return False
        if self._family.member_of(item) is not self.entity:
            return False
        try:
            return self._needs_write(item)
        except UndecodableItemError as error:
            if len(self.unfit) < MOST_NAMED:
                at = (item[PK]["S"], item[SK]["S"])
                self.unfit[at] = Unfit(" / ".join(at), str(error))
            return True

    def refuses(self, item: Wire) -> bool:
        """Whether an item cannot be decoded, or is away from its home, so that it stays as it is."""
        if not self.unfit:
            return False
        try:
            self._needs_write(item)
        except UndecodableItemError:
            return True
        return False

    def _needs_write(self, item: Wire) -> bool:
        """Whether an item needs a write; raises `UndecodableItemError` if it may not have one."""
        if not self.needed(item):
            return False
        if not self._family.untyped and (problem := unrevised_problem(item)):
            raise UndecodableItemError(problem)
        router, key = self.store.router, self.key_of(item)
        if router.reads_at(self.entity, item[PK]["S"], key.sort):
            return True
        # The item may have moved after the view was read.
        router.topology.refresh(self.entity, key.partition)
        if router.reads_at(self.entity, item[PK]["S"], key.sort):
            return True
        # Its entry would show it in listings of the index, beside the item at its home.
        raise UndecodableItemError("it is stored where no reader looks for it: run `dynashard verify --mend` first")

    def needed(self, item: Wire) -> bool:
        """Whether a live item of the entity needs a write; raises `UndecodableItemError` if it does not fit."""
        raise NotImplementedError

    def key_of(self, item: Wire) -> ItemKey:
        """Return the key of a stored item."""
        return ItemKey(logical_partition_of(self.entity, item[PK]["S"]), item[SK]["S"])
