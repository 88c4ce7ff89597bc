"""Relocation markers are followed to the items they lead to, for reads of keys and for listings.

A transaction becomes visible item by item to plain reads. So a marker that leads nowhere says nothing yet: both places
are read once more, in a transaction, before its item counts as absent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import ThrottledError, TransactionConflictError
from dynashard.repository.batch import Reading, StoredKey, chunks, get_all, stored_key, wire_key
from dynashard.repository.conditions import is_marker, moved_to
from dynashard.repository.retry_policy import Left, run_rounds
from dynashard.repository.store import Store
from dynashard.routing import home
from dynashard.transport.interface import Call, Wire

_PAIRS: Final = 5
"""Pairs of items in one transactional read: however large they are, they stay below DynamoDB's 4 MB for one."""
_PAIR_WAVE: Final = _PAIRS * 16

K = TypeVar("K")
Pair = tuple[StoredKey, StoredKey]
"""Where a marker stands, and where it leads."""


@dataclass(frozen=True, slots=True)
class StoredItems:
    """Reads stored items by their keys, again and again while DynamoDB leaves some of them out.

    Attributes:
        store: the table.
        entity: whose items they are.
        reading: how they are read.
        pauses: pauses before each next round, ending when it is time to give up.
        key_of: gives the key of an item from its stored key.
        send: sends calls at the same time; None for the store's own transport.
    """

    store: Store
    entity: EntityDefinition[Any]
    reading: Reading
    pauses: Iterator[float]
    key_of: Callable[[StoredKey], ItemKey]
    send: Callable[[Sequence[Call]], list[Wire]] | None = None

    def get(self, keys: Iterable[StoredKey]) -> dict[StoredKey, Wire]:
        """Return those of the items that are there.

        Raises:
            UnprocessedError: DynamoDB left keys unread for too long.

        Cost: what reading the items costs, 1 BatchGetItem for 100, 16 at a time.
        """
        named = {key: self.key_of(key) for key in sorted(set(keys))}
        return get_all(self.store, named, self.reading, self.pauses, self.send)

    def pairs(self, pairs: Iterable[Pair]) -> dict[Pair, tuple[Wire | None, Wire | None]]:
        """Return what stands at both places of each pair, at one moment.

        Raises:
            UnprocessedError: throttles or other transactions held an item for too long.

        Cost: 2 read units for every 4 KB at both places, 1 round trip for 5 pairs, 16 at a time.
        """
        both: dict[Pair, tuple[Wire | None, Wire | None]] = {}

        def once(left: Sequence[Pair]) -> Left[Pair]:
            # A transaction takes no item twice.
            asked = [list(dict.fromkeys(key for pair in part for key in pair)) for part in chunks(left, _PAIRS)]
            calls = [Call("TransactGetItems", {"TransactItems": [self._get(key) for key in part]}) for part in asked]
            try:
                answers = (self.send or self.store.transport.call_all)(calls)
            except (ThrottledError, TransactionConflictError) as error:
                return Left(left, error)
            stands: dict[StoredKey, Wire | None] = {}
            for part, answer in zip(asked, answers, strict=True):
                stands |= dict(zip(part, (response.get("Item") for response in answer["Responses"]), strict=True))
            both.update({(old, new): (stands[old], stands[new]) for old, new in left})
            return Left([])

        run_rounds(
            sorted(set(pairs)),
            once,
            self.pauses,
            wave=_PAIR_WAVE,
            operation="TransactGetItems",
            key_of=lambda pair: self.key_of(pair[0]),
        )
        return both

    def follow(self, markers: Mapping[K, Pair], live: Callable[[Wire], bool]) -> tuple[dict[K, Wire], dict[K, Pair]]:
        """Look behind markers once.

        Args:
            markers: where they stand and where they lead, by whatever names them.
            live: whether readers may see a stored item.

        Returns:
            The items they lead to; and where to look on for those that have moved again. The others are absent.

        Cost: `get` for all, and `pairs` for those that seem to lead nowhere.
        """
        there = self.get(new for _, new in markers.values())
        settled = {new for new, item in there.items() if is_marker(item) or live(item)}
        both = self.pairs(pair for pair in markers.values() if pair[1] not in settled)
        found: dict[K, Wire] = {}
        further: dict[K, Pair] = {}
        for name, pair in markers.items():
            before, after = both.get(pair, (None, there.get(pair[1])))
            stored = [item for item in (after, before) if item is not None]
            item = next(filter(live, stored), None)
            marker = next(filter(is_marker, stored), None)
            if item is not None:
                found[name] = item
            elif marker is not None and self.pair_of(marker)[1] != pair[1]:
                further[name] = self.pair_of(marker)
        return found, further

    def pair_of(self, marker: Mapping[str, Any]) -> Pair:
        """Return where a marker stands and where it leads."""
        stands = stored_key(marker)
        key = self.key_of(stands)
        return stands, (home(self.entity, key, moved_to(marker)), key.sort)

    def _get(self, key: StoredKey) -> Wire:
        reading = Reading(consistent=False, fields=self.reading.fields)
        return {"Get": reading.on({"TableName": self.store.table, "Key": wire_key(key)})}
