"""Relocation markers are followed to the items they lead to, for reads of keys and for listings.

A transaction becomes visible item by item to plain reads, so a marker whose new place is empty proves nothing yet: both
places are read again, in a transaction, before the item counts as absent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import ThrottledError, TransactionConflictError
from dynashard.repository.batch import AT_A_TIME, chunks, get_all
from dynashard.repository.conditions import is_damaged, is_marker, moved_to
from dynashard.repository.projection import Reading
from dynashard.repository.retry_policy import BatchOperation, Unfinished, read_rounds
from dynashard.repository.store import Store
from dynashard.routing import StoredKey, home, stored_key, wire_key
from dynashard.transport.interface import Call, Wire

_PAIRS: Final = 5
"""Pairs of items in one transactional read: however large they are, they stay below DynamoDB's limit of 4 MB."""
_TRANSACT_GET: Final = BatchOperation("TransactGetItems", _PAIRS * AT_A_TIME)

K = TypeVar("K")
Pair = tuple[StoredKey, StoredKey]
"""Where a marker is, and where it leads."""


class StoredItems(Struct, frozen=True):
    """Reads items by their stored keys, repeating what DynamoDB leaves out for as long as there are pauses.

    `key_of` returns the key of an item from its stored key; see `get_all` for `send`.
    """

    store: Store
    entity: EntityDefinition[Any]
    reading: Reading
    pauses: Iterator[float]
    key_of: Callable[[StoredKey], ItemKey]
    send: Callable[[Sequence[Call]], list[Wire]] | None = None

    def pairs(self, pairs: Iterable[Pair]) -> dict[Pair, tuple[Wire | None, Wire | None]]:
        """Return what is stored at both places of each pair, at one moment; raises as `read_rounds`.

        Cost: 2 read units for every 4 KB at both places, 1 round trip for 5 pairs, 16 at a time.
        """
        both: dict[Pair, tuple[Wire | None, Wire | None]] = {}
        # A transaction reads consistently without being asked, and its answers are not those that the reader knows.
        reading = self.reading._replace(consistent=False, reader=None)

        def get(key: StoredKey) -> Wire:
            return {"Get": reading.on({"TableName": self.store.table, "Key": wire_key(key)})}

        def once(left: Sequence[Pair]) -> Unfinished[Pair]:
            # A transaction cannot read an item twice.
            asked = [list(dict.fromkeys(key for pair in part for key in pair)) for part in chunks(left, _PAIRS)]
            calls = [Call("TransactGetItems", {"TransactItems": [get(key) for key in part]}) for part in asked]
            try:
                answers = (self.send or self.store.transport.call_all)(calls)
            except (ThrottledError, TransactionConflictError) as error:
                return Unfinished(left, error)
            stored: dict[StoredKey, Wire | None] = {}
            for part, answer in zip(asked, answers, strict=True):
                stored |= dict(zip(part, (response.get("Item") for response in answer["Responses"]), strict=True))
            both.update({(old, new): (stored[old], stored[new]) for old, new in left})
            return Unfinished([])

        read_rounds(_TRANSACT_GET, sorted(set(pairs)), once, self.pauses, lambda pair: self.key_of(pair[0]))
        return both

    def follow(self, markers: Mapping[K, Pair], live: Callable[[Wire], bool]) -> tuple[dict[K, Wire], dict[K, Pair]]:
        """Return the items that markers lead to, and the next pairs of those that have moved again, by any names.

        Items of names that are in neither answer are absent. `live` says whether readers may see a stored item. Raises
        as `read_rounds`.

        Cost: what reading the items costs, 1 BatchGetItem for 100, 16 at a time; `pairs` for those that are not found.
        """
        there = get_all(
            self.store,
            sorted({new for _, new in markers.values()}),
            self.reading,
            self.pauses,
            key_of=self.key_of,
            places_of=lambda keys: keys,
            send=self.send,
        )
        settled = {new for new, item in there.items() if is_marker(item) or live(item)}
        both = self.pairs(pair for pair in markers.values() if pair[1] not in settled)
        found: dict[K, Wire] = {}
        further: dict[K, Pair] = {}
        for name, pair in markers.items():
            before, after = both.get(pair, (None, there.get(pair[1])))
            stored = [item for item in (after, before) if item is not None]
            item = next((each for each in stored if live(each) or is_damaged(each)), None)
            marker = next(filter(is_marker, stored), None)
            if item is not None:
                found[name] = item
            elif marker is not None and self.pair_of(marker)[1] != pair[1]:
                further[name] = self.pair_of(marker)
        return found, further

    def pair_of(self, marker: Mapping[str, Any]) -> Pair:
        """Return where a marker is and where it leads."""
        place = stored_key(marker)
        key = self.key_of(place)
        return place, (home(self.entity, key, moved_to(marker)), key.sort)
