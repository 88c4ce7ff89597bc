"""Compares items with the reservations of their unique values, and repairs what differs, during normal traffic.

Reservations are missing for items that were stored before the fields were declared unique, or by programs that do not
know the declaration. They are left over if only the item was deleted, by DynamoDB's TTL or by another program. Each
repair is a transaction that demands that the item is still as it was read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dynashard.entity import EntityDefinition, ItemKey, revision_in
from dynashard.entity.uniqueness import RESERVATION, UniqueDefinition
from dynashard.errors import ConditionFailedError, TransactionRefusedError
from dynashard.repository.batch import get_all
from dynashard.repository.conditions import Condition, is_live
from dynashard.repository.home_reader import HomeReader
from dynashard.repository.projection import Reading
from dynashard.repository.reservations import (
    Reserving,
    as_read,
    expiry_of,
    fields_stored,
    has,
    owner_of,
    reservation_key,
    stored_places,
)
from dynashard.repository.store import Store
from dynashard.schema import EXPIRES_AT, PK
from dynashard.transactions.steps import CheckStored
from dynashard.transactions.transaction import Transaction
from dynashard.transport.interface import Wire

_TRIES: Final = 8
"""How often an item is read again because it was changed while values were reserved for it."""


class Reserved(NamedTuple):
    """A reservation that a stored item should have, and who has it: None if nobody has."""

    place: str
    unique: UniqueDefinition
    owner: ItemKey | None


class Repaired(NamedTuple):
    """What was done for an item: how many reservations were stored, and those that it still lacks.

    Another live item has what is left, or the item was changed again and again.
    """

    reserved: int
    left: list[Reserved]


class ReservationRepair:
    """The reservations of one entity's items. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity
        self._reader = HomeReader(store, entity)

    def lacking(self, items: Mapping[ItemKey, Wire]) -> dict[ItemKey, list[Reserved]]:
        """Return the reservations that stored items should have and do not, or with another time of expiry.

        Cost: a consistent read of each, 1 round trip for 100.
        """
        due = {key: stored_places(self._entity, item) for key, item in items.items()}
        found = self._stored({place for places in due.values() for place in places})
        lacking: dict[ItemKey, list[Reserved]] = {}
        for key, places in due.items():
            expires = expiry_of(self._entity, fields_stored(self._entity, items[key]))
            for place, unique in places.items():
                owner = owner_of(found.get(place, {}))
                if owner != key or found[place].get(EXPIRES_AT) != expires:
                    lacking.setdefault(key, []).append(Reserved(place, unique, owner))
        return lacking

    def left_over(self, reservations: Iterable[Wire]) -> dict[str, ItemKey]:
        """Return which of some stored reservations are in force without an item that has the values.

        Returns their owners by stored partition keys. Cost: a consistent read of each owner, 1 round trip for 100.
        """
        now = self._store.now()
        owners = {each[PK]["S"]: owner_of(each) for each in reservations if is_live(each, now)}
        known = list({owner for owner in owners.values() if owner is not None})
        items = self._reader.read_all(known, Reading(consistent=True))
        return {
            place: owner
            for place, owner in owners.items()
            if owner is not None and not (owner in items and has(self._entity, items[owner], place))
        }

    def nameless(self, reservations: Iterable[Wire]) -> dict[str, Wire]:
        """Return which of some stored reservations are in force and name no owner, by stored partition keys."""
        now = self._store.now()
        return {each[PK]["S"]: each for each in reservations if is_live(each, now) and owner_of(each) is None}

    def still_nameless(self, place: str) -> Wire | None:
        """Return the reservation at a place if it is in force and names no owner. Cost: a consistent read."""
        return self.nameless(self._stored([place]).values()).get(place)

    def discard(self, found: Wire) -> bool:
        """Delete a reservation that names no owner; return whether it was as it was read. Cost: 1 write unit."""
        term, values = as_read(found)
        key = reservation_key(found[PK]["S"])
        try:
            self._store.transport.call(
                "DeleteItem", Condition(term, values).on({"TableName": self._store.table, "Key": key})
            )
        except ConditionFailedError:
            return False
        return True

    def current(self, key: ItemKey) -> Wire | None:
        """Return the live item with this key. Cost: a consistent read."""
        return self._reader.read(key, Reading(consistent=True))

    def reserve(self, key: ItemKey, item: Wire, lacking: Sequence[Reserved]) -> Repaired:
        """Reserve what a stored item lacks, one after another.

        If the item was changed since it was read, what it lacks then is reserved, because a write of other fields
        reserves nothing. An item that is changed again and again is left.

        Cost: 2 write units for the check of the item and each KB of it, and 2 for the reservation; 1 read unit if
        another owner has it; after a change of the item 2 read units more.
        """
        done = 0
        for _ in range(_TRIES):
            reserved, taken, changed = self._reserved(key, item, lacking)
            done += reserved
            if not changed:
                return Repaired(done, taken)
            current = self.current(key)
            if current is None:
                return Repaired(done, [])
            item, lacking = current, self.lacking({key: current}).get(key, [])
        return Repaired(done, list(lacking))

    def free(self, place: str, unique: UniqueDefinition, owner: ItemKey) -> bool:
        """Delete a reservation that is left over; return whether it was. Cost: a consistent read, 4 write units."""
        item = self.current(owner)
        if item is not None and has(self._entity, item, place):
            return False
        revision = None if item is None else revision_in(item)
        try:
            self._transact(CheckStored(self._entity, owner, revision, Reserving({}, {place: unique})))
        except TransactionRefusedError:
            return False
        return True

    def _reserved(self, key: ItemKey, item: Wire, lacking: Sequence[Reserved]) -> tuple[int, list[Reserved], bool]:
        """Reserve until the item turns out to be changed; return how many, what others have, and whether it was."""
        taken: list[Reserved] = []
        expires = expiry_of(self._entity, fields_stored(self._entity, item))
        for number, each in enumerate(lacking):
            reserving = Reserving({each.place: each.unique}, {}, expires, {each.place})
            try:
                self._transact(CheckStored(self._entity, key, revision_in(item), reserving))
            except TransactionRefusedError as refused:
                if refused.reason != "not_unique":
                    return number - len(taken), taken, True
                taken.append(each)
        return len(lacking) - len(taken), taken, False

    def _transact(self, step: CheckStored) -> None:
        Transaction(self._store, [step]).run()

    def _stored(self, places: Iterable[str]) -> dict[str, Wire]:
        return get_all(
            self._store,
            list(places),
            Reading(consistent=True),
            self._store.retry_policy.pauses(),
            key_of=lambda place: ItemKey(place, RESERVATION),
            places_of=lambda some: [(place, RESERVATION) for place in some],
        )
