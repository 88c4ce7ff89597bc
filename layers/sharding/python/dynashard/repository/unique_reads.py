"""Looks an item up by its unique fields: the reservation names the owner, whose item is read next."""

from collections.abc import Mapping
from typing import Any, Generic

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.entity.uniqueness import RESERVATION, UniqueDefinition
from dynashard.errors import InvalidQueryError, TransactionCanceledError, TransactionConflictError
from dynashard.repository.conditions import is_live, is_marker
from dynashard.repository.item_reads import ItemReads
from dynashard.repository.projection import Reading
from dynashard.repository.reservations import has, owner_of, reservation_key
from dynashard.repository.retry_policy import unsettled
from dynashard.repository.store import E, Store, read_operation, view_ended
from dynashard.routing import wire_key
from dynashard.transport.interface import Wire


class UniqueReads(Generic[E]):
    """Looks items of one entity up by unique fields. Safe to share between threads."""

    def __init__(self, store: Store, reads: ItemReads[E]) -> None:
        self._store = store
        self._reads = reads
        self._entity: EntityDefinition[E] = reads.entity

    @read_operation
    def find(self, unique: UniqueDefinition, values: Mapping[str, Any]) -> Wire | None:
        """Return the live item that has these values, None if there is none.

        Raises:
            InvalidQueryError: the reservations of stored items are still being built.
            TransactionConflictError: others changed who has the values until the last retry.
        """
        place = self._place(unique, values)
        if place is None:
            return None
        pauses = self._store.retry_policy.pauses()
        while True:
            owner = self._owner(place)
            if owner is None:
                return None
            item = self._reads.reader.read(owner, Reading(consistent=True))
            if item is not None and has(self._entity, item, place):
                return item
            # A transaction may become visible one item after the other. One that reads both waits for it.
            settled, item = self._both(place, owner)
            if settled:
                return item
            if next(pauses, None) is None:
                raise unsettled(self._entity, "GetItem")

    @read_operation
    def owner(self, unique: UniqueDefinition, values: Mapping[str, Any]) -> ItemKey | None:
        """Return the logical key for which the values are reserved, None if they are free; see `find`."""
        place = self._place(unique, values)
        return None if place is None else self._owner(place)

    def _place(self, unique: UniqueDefinition, values: Mapping[str, Any]) -> str | None:
        if unique.building:
            names = ", ".join(unique.fields)
            raise InvalidQueryError(
                f"{self._entity.name} cannot be looked up by {names} yet: run `dynashard unique build`, and remove "
                "building=True from the declaration",
                field=unique.fields[0],
            )
        return unique.place(self._entity, values)

    def _owner(self, place: str) -> ItemKey | None:
        request = {"TableName": self._store.table, "Key": reservation_key(place), "ConsistentRead": True}
        found: Wire | None = self._store.transport.call("GetItem", request).get("Item")
        return owner_of(found) if found is not None and is_live(found, self._store.now()) else None

    def _both(self, place: str, owner: ItemKey) -> tuple[bool, Wire | None]:
        """Read a reservation and its owner's item at one moment; return whether that decides, and the item if so."""
        places = self._store.router.places(self._entity, owner)
        keys = [(place, RESERVATION), *((at, owner.sort) for at in dict.fromkeys((places.old, places.new)))]
        gets = [{"Get": {"TableName": self._store.table, "Key": wire_key(key)}} for key in keys]
        try:
            answer = self._store.transport.call("TransactGetItems", {"TransactItems": gets})
        except (TransactionCanceledError, TransactionConflictError):
            return False, None
        reserved, *items = (response.get("Item") for response in answer["Responses"])
        now = self._store.now()
        if not is_live(reserved, now):
            return True, None
        live = [item for item in items if is_live(item, now) and has(self._entity, item, place)]
        # A marker at the only home says that a resize has begun of which this view does not know.
        if view_ended(self._store, places) or (not live and not places.moving and any(map(is_marker, items))):
            self._store.router.topology.refresh(self._entity, owner.partition)
            return False, None
        return owner_of(reserved or {}) == owner, next(iter(live), None)
