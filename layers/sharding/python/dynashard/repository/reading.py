"""Reads of items that have one home, while their shard counts change.

A marker says where to look instead; see `follow_markers`.

In SETTLE a key that has nothing at its new home is looked for at the old one too; see `late`.

An answer that arrives after its view has ended counts only if the topology says the same as before: the read may have
been executed when the item had already left the place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.repository.batch import GET_WAVE, Reading, StoredKey, get_once, wire_key
from dynashard.repository.conditions import is_live, is_marker, moved_to
from dynashard.repository.follow_markers import StoredItems
from dynashard.repository.late import bring_home, ended, stored_at
from dynashard.repository.outcomes import unsettled
from dynashard.repository.phase_table import settling
from dynashard.repository.retry_policy import Left, go_on
from dynashard.repository.store import Store
from dynashard.routing import Places, home
from dynashard.topology import Phase
from dynashard.transport.interface import Wire


@dataclass(frozen=True, slots=True)
class _Marker:
    """A mark that was read.

    Attributes:
        place: the stored partition key where it stands.
        target: the one it points to; the same place if the key is to be looked for again.
        places: where the key was looked for.
    """

    place: str
    target: str
    places: Places


def _unknown(places: Places) -> _Marker:
    """The mark of a key that must be looked for again."""
    return _Marker(places.old, places.old, places)


class HomeReader:
    """A `Reader` for placements that give every key one home. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def read(self, key: ItemKey, reading: Reading) -> Wire | None:
        """The live item with this key; see `Reader.read`.

        Cost: one request; one more for an item that has moved, and a transactional read of two if it is gone. In
        SETTLE, one more if nothing is found at the new home. All of it again if a change overtook the answer.
        """
        store = self._store
        places = store.router.places(self._entity, key)
        place = _first(places)
        request = reading.on({"TableName": store.table, "Key": wire_key((place, key.sort))})
        item: Wire | None = store.transport.call("GetItem", request).get("Item")
        overtaken = self._overtaken(key, places)
        if not overtaken and is_live(item, store.now()):
            return item
        found: dict[ItemKey, Wire] = {}
        if overtaken:
            marks = {key: _unknown(places)}
        elif item is not None and is_marker(item):
            marks = {key: self._mark(key, item, place, places)}
        elif settling(places):
            marks = self._helped({key: places}, found)
        else:
            return None
        self._follow(marks, reading, found, store.retry_policy.pauses())
        return found.get(key)

    def read_all(self, keys: Sequence[ItemKey], reading: Reading) -> Mapping[ItemKey, Wire]:
        """The live items with these keys; see `Reader.read_all`.

        Cost: one BatchGetItem for 100 keys, 16 at a time; as many more for those that have moved.
        """
        found: dict[ItemKey, Wire] = {}
        pauses = self._store.retry_policy.pauses()
        self._follow(self._look(keys, reading, found, pauses), reading, found, pauses)
        return found

    def _mark(self, key: ItemKey, mark: Wire, place: str, places: Places) -> _Marker:
        return _Marker(place, home(self._entity, key, moved_to(mark)), places)

    def _look(
        self, keys: Sequence[ItemKey], reading: Reading, found: dict[ItemKey, Wire], pauses: Iterator[float]
    ) -> dict[ItemKey, _Marker]:
        """Read items where they should be into `found`; the marks that stand there instead."""
        asked: dict[ItemKey, Places] = {}

        def place(key: ItemKey) -> str:
            places = asked[key] = self._store.router.places(self._entity, key)
            return _first(places)

        marks: dict[ItemKey, _Marker] = {}
        now = self._store.now()
        for key, item in self._get(keys, place, reading, pauses):
            if is_marker(item):
                places = asked[key]
                marks[key] = self._mark(key, item, _first(places), places)
            elif is_live(item, now):
                found[key] = item
        for key, places in asked.items():
            if self._overtaken(key, places):
                found.pop(key, None)
                marks[key] = _unknown(places)
        lacking = {key: p for key, p in asked.items() if settling(p) and key not in found and key not in marks}
        return marks | self._helped(lacking, found)

    def _helped(self, keys: Mapping[ItemKey, Places], found: dict[ItemKey, Wire]) -> dict[ItemKey, _Marker]:
        """Look for keys at their old homes; bring home what lives there into `found`. The marks that stand there."""
        marks: dict[ItemKey, _Marker] = {}
        for key, places in keys.items():
            item = stored_at(self._store, places.old, key.sort)
            if item is not None and is_marker(item):
                marks[key] = self._mark(key, item, places.old, places)
            elif item is not None and is_live(item, self._store.now()):
                home_again = bring_home(self._store, item, places)
                if home_again is not None:
                    found[key] = home_again
                else:
                    marks[key] = _unknown(places)
        return marks

    def _get(
        self, keys: Sequence[ItemKey], place: Callable[[ItemKey], str], reading: Reading, pauses: Iterator[float]
    ) -> list[tuple[ItemKey, Wire]]:
        """What is stored at the places of these keys, which are asked for anew before each request."""
        stored: list[tuple[ItemKey, Wire]] = []

        def once(left: Sequence[ItemKey]) -> Left[ItemKey]:
            spots: dict[StoredKey, ItemKey] = {(place(key), key.sort): key for key in left}
            answered: dict[StoredKey, Wire] = {}
            unread = get_once(self._store, list(spots), reading, answered)
            stored.extend((spots[spot], item) for spot, item in answered.items())
            return Left([spots[spot] for spot in unread.members], unread.cause)

        go_on(keys, once, pauses, wave=GET_WAVE, operation="BatchGetItem", key_of=lambda key: key)
        return stored

    def _follow(
        self,
        marks: Mapping[ItemKey, _Marker],
        reading: Reading,
        found: dict[ItemKey, Wire],
        pauses: Iterator[float],
    ) -> None:
        """Read the items of marks into `found`; look again for those that did not keep still."""
        while marks:
            again = self._moved(marks, reading, found, pauses)
            if not again:
                return
            for partition in {key.partition for key in again}:
                self._store.router.refresh(self._entity, partition)
            if next(pauses, None) is None:
                raise unsettled(self._entity, "GetItem")
            marks = self._look(again, reading, found, pauses)

    def _moved(
        self,
        marks: Mapping[ItemKey, _Marker],
        reading: Reading,
        found: dict[ItemKey, Wire],
        pauses: Iterator[float],
    ) -> list[ItemKey]:
        """Look behind marks once; the keys that must be looked for again from the start."""
        followed = {key: marker for key, marker in marks.items() if self._holds(key, marker)}
        pairs = {key: ((marker.place, key.sort), (marker.target, key.sort)) for key, marker in followed.items()}
        key_of = {spot: key for key, pair in pairs.items() for spot in pair}
        now = self._store.now()
        stored = StoredItems(self._store, self._entity, reading, pauses, key_of.__getitem__)
        items, further = stored.behind(pairs, lambda item: is_live(item, now))
        found.update(items)
        overtaken = [
            key for key, marker in followed.items() if key not in further and self._overtaken(key, marker.places)
        ]
        for key in overtaken:
            found.pop(key, None)
        return [*(key for key in marks if key not in followed), *further, *overtaken]

    def _overtaken(self, key: ItemKey, places: Places) -> bool:
        """Whether an answer came after the end of the view, and the topology has changed since it was asked.

        Costs nothing while the view lasts; else what asking the topology for a view costs.
        """
        if not ended(self._store, places):
            return False
        now = self._store.router.view(self._entity, key.partition)
        return now != replace(places.view, expires=now.expires)

    def _holds(self, key: ItemKey, marker: _Marker) -> bool:
        """Whether a mark may be followed: it points elsewhere, and the view under which it was read is in force."""
        places = self._store.router.places(self._entity, key)
        return marker.places.view.guard == places.view.guard and marker.target != marker.place


def _first(places: Places) -> str:
    """Where to look first."""
    return places.new if places.view.phase is Phase.SETTLE else places.old
