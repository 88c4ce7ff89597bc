"""Reads of items that have one home, while their shard counts change.

A relocation marker leads to the item's new home; see `follow_markers`. In SETTLE a key without an item at its new home
is looked for at the old one too; see `late`.

An answer that arrives after its view has ended counts only if the topology is the same as before, because the read may
have been executed when the item had already left the place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from msgspec import Struct

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.repository.batch import get_all
from dynashard.repository.conditions import is_damaged, is_live, is_marker, moved_to
from dynashard.repository.follow_markers import Pair, StoredItems
from dynashard.repository.projection import Reading
from dynashard.repository.retry_policy import unsettled
from dynashard.repository.store import Store, view_ended
from dynashard.routing import Places, StoredKey, home, settling, wire_key
from dynashard.topology import Phase
from dynashard.transport.interface import Wire


class HomeReader:
    """Finds live items by their keys, for placements that give every key one home. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def read(self, key: ItemKey, reading: Reading) -> Wire | None:
        """Return the live item with this key.

        Raises:
            TransactionConflictError: it was still being moved after the last retry.
            UnprocessedError: more than one request was needed, and DynamoDB did not answer them in time.

        Cost: one request; one more for an item that has moved, and a transactional read of two if it is gone. In
        SETTLE, one more if nothing is found at the new home. All of it again if a resize overtook the answer.
        """
        store, entity = self._store, self._entity
        places = store.router.places_to_read(entity, key)
        if places is None:
            return None
        request = reading.on({"TableName": store.table, "Key": wire_key((_first(places), key.sort))})
        item: Wire | None = store.transport.call("GetItem", request).get("Item")
        if is_live(item, store.now()) and not view_ended(store, places):
            return item
        lookup = _Lookup(store, entity, reading)
        lookup.follow(lookup.classify({key: places}, {} if item is None else {key: item}))
        return lookup.found.get(key)

    def read_all(self, keys: Sequence[ItemKey], reading: Reading) -> Mapping[ItemKey, Wire]:
        """Return the live items with these distinct keys; raises what `read` raises.

        Cost: one BatchGetItem for 100 keys, 16 at a time; as many more for those that have moved.
        """
        router, entity = self._store.router, self._entity
        if entity.time is not None:
            view_of = cache(partial(router.topology.view, entity))
            keys = [key for key in keys if router.may_exist(entity, key, view_of(key.partition))]
        lookup = _Lookup(self._store, entity, reading)
        lookup.follow(lookup.read_homes(keys))
        return lookup.found


class _Marker(Struct, frozen=True):
    """A marker that was read, and where its key was looked for."""

    pair: Pair
    places: Places


class _Lookup:
    """One search for keys. `found` gathers the live items. A marker of None means: look for its key from the start."""

    def __init__(self, store: Store, entity: EntityDefinition[Any], reading: Reading) -> None:
        self.found: dict[ItemKey, Wire] = {}
        self._store = store
        self._entity = entity
        self._reading = reading
        self._pauses = store.retry_policy.pauses()

    def read_homes(self, keys: Sequence[ItemKey]) -> dict[ItemKey, _Marker | None]:
        """Read items at their homes, under views of each request; return the markers that are there instead."""
        asked: dict[ItemKey, Places] = {}

        def places_of(left: Sequence[ItemKey]) -> list[StoredKey]:
            router, entity = self._store.router, self._entity
            views = {each: router.topology.view(entity, each) for each in dict.fromkeys(key.partition for key in left)}
            places = [router.places(entity, key, views[key.partition]) for key in left]
            asked.update(zip(left, places, strict=True))
            return [(_first(each), key.sort) for key, each in zip(left, places, strict=True)]

        stored = get_all(self._store, keys, self._reading, self._pauses, key_of=lambda key: key, places_of=places_of)
        return self.classify(asked, stored)

    def classify(
        self, asked: Mapping[ItemKey, Places], stored: Mapping[ItemKey, Wire]
    ) -> dict[ItemKey, _Marker | None]:
        """Add the live items to `found`; return the markers."""
        markers: dict[ItemKey, _Marker | None] = {}
        # What has expired is one question, and whether the view has ended is another.
        now, clock = self._store.now(), self._store.runtime.clock()
        for key, places in asked.items():
            item = stored.get(key)
            if item is not None and clock <= places.view.expires and is_live(item, now):
                self.found[key] = item
                continue
            place = _first(places)
            if self._overtaken(key, places):
                markers[key] = None
                continue
            if settling(places) and not is_marker(item) and not is_live(item, now):
                from dynashard.repository.late import bring_home, stored_at  # noqa: PLC0415 - it is made of writes

                item, place = stored_at(self._store, places.old, key.sort), places.old
                if is_live(item, self._store.now()):
                    item = item and bring_home(self._store, self._entity, item, places)
                    if item is None:
                        markers[key] = None
            if item is not None and is_damaged(item):
                # Decoding it has the error.
                self.found[key] = item
            elif item is not None and is_marker(item):
                target = home(self._entity, key, moved_to(item))
                markers[key] = _Marker(((place, key.sort), (target, key.sort)), places)
            elif item is not None and is_live(item, now):
                self.found[key] = item
        return markers

    def follow(self, markers: dict[ItemKey, _Marker | None]) -> None:
        """Add the items that markers lead to; look again for those that moved meanwhile."""
        while markers:
            again = self._follow_once(markers)
            if not again:
                return
            for partition in {key.partition for key in again}:
                self._store.router.topology.refresh(self._entity, partition)
            if next(self._pauses, None) is None:
                raise unsettled(self._entity, "GetItem")
            markers = self.read_homes(again)

    def _follow_once(self, markers: Mapping[ItemKey, _Marker | None]) -> list[ItemKey]:
        """Follow markers once; return the keys that must be looked for again from the start."""
        followed = {key: marker for key, marker in markers.items() if marker and self._holds(key, marker)}
        key_of = {spot: key for key, marker in followed.items() for spot in marker.pair}
        now = self._store.now()
        stored = StoredItems(self._store, self._entity, self._reading, self._pauses, key_of.__getitem__)
        pairs = {key: marker.pair for key, marker in followed.items()}
        items, further = stored.follow(pairs, lambda item: is_live(item, now))
        overtaken = {key for key in followed if key not in further and self._overtaken(key, followed[key].places)}
        self.found.update({key: item for key, item in items.items() if key not in overtaken})
        return [key for key in markers if key not in followed or key in further or key in overtaken]

    def _overtaken(self, key: ItemKey, places: Places) -> bool:
        """Whether an answer came after the end of its view, and the topology has changed since."""
        if not view_ended(self._store, places):
            return False
        now = self._store.router.topology.view(self._entity, key.partition)
        return now != replace(places.view, expires=now.expires)

    def _holds(self, key: ItemKey, marker: _Marker) -> bool:
        """Whether a marker leads to another place, and the view under which it was read is in force."""
        places = self._store.router.places(self._entity, key)
        place, target = marker.pair
        return marker.places.view.guard == places.view.guard and place != target


def _first(places: Places) -> str:
    """Where to look first."""
    return places.new if places.view.phase is Phase.SETTLE else places.old
