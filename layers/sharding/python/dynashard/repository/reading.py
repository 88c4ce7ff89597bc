"""Reads of items that have one home, while their shard counts change.

A marker says where to look instead; see `follow_markers`.

In SETTLE a key that has nothing at its new home is looked for at the old one too; see `late`.

An answer that arrives after its view has ended counts only if the topology says the same as before: the read may have
been executed when the item had already left the place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.repository.batch import GET_WAVE, Reading, StoredKey, get_once, wire_key
from dynashard.repository.conditions import is_live, is_marker, moved_to
from dynashard.repository.follow_markers import StoredItems
from dynashard.repository.late import bring_home, stored_at, view_ended
from dynashard.repository.outcomes import unsettled
from dynashard.repository.phase_table import settling
from dynashard.repository.retry_policy import Left, run_rounds
from dynashard.repository.store import Store
from dynashard.routing import Places, home
from dynashard.topology import Phase
from dynashard.transport.interface import Wire


class HomeReader:
    """Finds live items by their keys, for placements that give every key one home. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def read(self, key: ItemKey, reading: Reading) -> Wire | None:
        """The live item with this key.

        Raises:
            TransactionConflictError: it was being moved all the time.
            UnprocessedError: more than one request was needed, and DynamoDB did not answer them in time.

        Cost: one request; one more for an item that has moved, and a transactional read of two if it is gone. In
        SETTLE, one more if nothing is found at the new home. All of it again if a change overtook the answer.
        """
        store = self._store
        places = store.router.places(self._entity, key)
        request = reading.on({"TableName": store.table, "Key": wire_key((_first(places), key.sort))})
        item: Wire | None = store.transport.call("GetItem", request).get("Item")
        if is_live(item, store.now()) and not view_ended(store, places):
            return item
        lookup = _Lookup(store, self._entity, reading)
        lookup.follow(lookup.take({key: places}, {} if item is None else {key: item}))
        return lookup.found.get(key)

    def read_all(self, keys: Sequence[ItemKey], reading: Reading) -> Mapping[ItemKey, Wire]:
        """The live items with these keys, which differ; raises as `read`.

        Cost: one BatchGetItem for 100 keys, 16 at a time; as many more for those that have moved.
        """
        lookup = _Lookup(self._store, self._entity, reading)
        lookup.follow(lookup.look(keys))
        return lookup.found


class _Marker(NamedTuple):
    """A marker that was read.

    Attributes:
        place: the stored partition key where it stands.
        target: the one it points to; the same place if the key is to be looked for again.
        places: where the key was looked for.
    """

    place: str
    target: str
    places: Places


def _unknown(places: Places) -> _Marker:
    """The marker of a key that must be looked for again."""
    return _Marker(places.old, places.old, places)


class _Lookup:
    """One search for keys; `found` gathers the live items."""

    def __init__(self, store: Store, entity: EntityDefinition[Any], reading: Reading) -> None:
        self.found: dict[ItemKey, Wire] = {}
        self._store = store
        self._entity = entity
        self._reading = reading
        self._pauses = store.retry_policy.pauses()

    def look(self, keys: Sequence[ItemKey]) -> dict[ItemKey, _Marker]:
        """Read items where they should be; the markers that stand there instead.

        Where that is, is asked for anew before each request.
        """
        asked: dict[ItemKey, Places] = {}
        stored: dict[ItemKey, Wire] = {}

        def once(left: Sequence[ItemKey]) -> Left[ItemKey]:
            asked.update({key: self._store.router.places(self._entity, key) for key in left})
            spots = {(_first(asked[key]), key.sort): key for key in left}
            answered: dict[StoredKey, Wire] = {}
            unread = get_once(self._store, list(spots), self._reading, answered)
            stored.update({spots[spot]: item for spot, item in answered.items()})
            return Left([spots[spot] for spot in unread.members], unread.cause)

        run_rounds(keys, once, self._pauses, wave=GET_WAVE, operation="BatchGetItem", key_of=lambda key: key)
        return self.take(asked, stored)

    def take(self, asked: Mapping[ItemKey, Places], stored: Mapping[ItemKey, Wire]) -> dict[ItemKey, _Marker]:
        """Take what is stored where keys were looked for; the markers among it, and keys to be looked for again."""
        markers: dict[ItemKey, _Marker] = {}
        now = self._store.now()
        for key, places in asked.items():
            item, place = stored.get(key), _first(places)
            if self._overtaken(key, places):
                markers[key] = _unknown(places)
                continue
            if settling(places) and not is_marker(item) and not is_live(item, now):
                item, place = stored_at(self._store, places.old, key.sort), places.old
                if is_live(item, self._store.now()):
                    item = item and bring_home(self._store, item, places)
                    if item is None:
                        markers[key] = _unknown(places)
            if item is not None and is_marker(item):
                markers[key] = _Marker(place, home(self._entity, key, moved_to(item)), places)
            elif item is not None and is_live(item, now):
                self.found[key] = item
        return markers

    def follow(self, markers: dict[ItemKey, _Marker]) -> None:
        """Find the items of markers; look again for those that did not keep still."""
        while markers:
            again = self._behind(markers)
            if not again:
                return
            for partition in {key.partition for key in again}:
                self._store.router.topology.refresh(self._entity, partition)
            if next(self._pauses, None) is None:
                raise unsettled(self._entity, "GetItem")
            markers = self.look(again)

    def _behind(self, markers: Mapping[ItemKey, _Marker]) -> list[ItemKey]:
        """Look behind markers once; the keys that must be looked for again from the start."""
        followed = {key: marker for key, marker in markers.items() if self._holds(key, marker)}
        pairs = {key: ((marker.place, key.sort), (marker.target, key.sort)) for key, marker in followed.items()}
        key_of = {spot: key for key, pair in pairs.items() for spot in pair}
        now = self._store.now()
        stored = StoredItems(self._store, self._entity, self._reading, self._pauses, key_of.__getitem__)
        items, further = stored.follow(pairs, lambda item: is_live(item, now))
        overtaken = {key for key in followed if key not in further and self._overtaken(key, followed[key].places)}
        self.found.update({key: item for key, item in items.items() if key not in overtaken})
        return [key for key in markers if key not in followed or key in further or key in overtaken]

    def _overtaken(self, key: ItemKey, places: Places) -> bool:
        """Whether an answer came after the end of the view, and the topology has changed since it was asked.

        Costs nothing while the view lasts; else what asking the topology for a view costs.
        """
        if not view_ended(self._store, places):
            return False
        now = self._store.router.topology.view(self._entity, key.partition)
        return now != replace(places.view, expires=now.expires)

    def _holds(self, key: ItemKey, marker: _Marker) -> bool:
        """Whether a marker may be followed: it points elsewhere, and the view under which it was read is in force."""
        places = self._store.router.places(self._entity, key)
        return marker.places.view.guard == places.view.guard and marker.target != marker.place


def _first(places: Places) -> str:
    """Where to look first."""
    return places.new if places.view.phase is Phase.SETTLE else places.old
