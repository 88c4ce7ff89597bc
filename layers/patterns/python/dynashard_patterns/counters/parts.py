"""Reads the parts of a counter: all of them at one moment, or each as it is found."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from dynashard.entity import EntityDefinition, ItemKey, definition
from dynashard.errors import InvalidKeyError, ThrottledError, TransactionConflictError
from dynashard.placement import PART_DIGITS
from dynashard.repository import Store
from dynashard.repository.batch import get_all
from dynashard.repository.projection import Reading
from dynashard.repository.retry_policy import unsettled
from dynashard.routing import home, wire_key
from dynashard.topology import View
from dynashard.transport.interface import Wire
from dynashard_patterns.counters.declaration import Counter
from dynashard_patterns.counters.shares import Side

C = TypeVar("C", bound=Counter)

EXACT: Final = "exact"
"""All parts at one moment, by a transaction."""
CURRENT: Final = "current"
"""Each part with everything that was acknowledged before, but not all at one moment."""
CHEAP: Final = "cheap"
"""Each part as some copy of it is found, which may be some seconds old."""


class PartsRead(NamedTuple, Generic[C]):
    """The parts of a counter that were read, by their numbers; None for one that is not stored.

    `writable` is how many of them writers use now; while they become more, the others are only read.
    """

    items: Sequence[C | None]
    writable: int

    @property
    def total(self) -> int:
        """The value of the counter."""
        return sum(self.numbers("value"))

    def numbers(self, side: Side) -> list[int]:
        """Return one number of each part; 0 if it is not stored."""
        return [0 if item is None else getattr(item, side) for item in self.items]


class PartReader(Generic[C]):
    """Reads the parts of counters of one kind. Safe to share between threads."""

    def __init__(self, store: Store, model: type[C]) -> None:
        self.entity: EntityDefinition[C] = definition(model)
        self._store = store

    def partition(self, key: Mapping[str, Any]) -> str:
        """Return the logical partition of a counter.

        Raises `InvalidKeyError` if a field of its key is missing, unknown, or not allowed in a key.
        """
        if not isinstance(key, Mapping):
            fields = ", ".join(f"{name!r}: ..." for name in self.entity.partition_fields)
            raise InvalidKeyError(f"the key of a counter is {key!r}; write its fields, {{{fields}}}")
        if "part" in key:
            raise InvalidKeyError("part is chosen for you: leave it out", field="part")
        return self.entity.key_of({**key, "part": 0}).partition

    def view(self, partition: str) -> View:
        """Return the view under which a counter is changed now. Cost: one read a lease."""
        return self._store.router.topology.view(self.entity, partition)

    def read(self, partition: str, how: str) -> PartsRead[C]:
        """Return the parts of a counter.

        Raises:
            TransactionConflictError: others wrote them until the last retry; only for `EXACT` reads.
            ThrottledError, UnprocessedError: DynamoDB throttled it until the last retry.

        Cost: for each part 2 read units if `EXACT`, 1 if `CURRENT`, 0.5 if `CHEAP`; a counter of one part costs 1 in
        place of 2. 1 round trip, and 1 more for each conflict.
        """
        pauses = self._store.retry_policy.pauses()
        while True:
            view = self.view(partition)
            count = max(view.count, view.new_count)
            keys = [self._stored_key(partition, part) for part in range(count)]
            # One item is always read at one moment, and a consistent read of it costs half of a transaction.
            items = (
                self._exact(partition, keys, pauses) if how == EXACT and count > 1 else self._each(keys, how, pauses)
            )
            # An answer of after the end of the view may lack a part that others know by then.
            if items is not None and self._store.runtime.clock() <= view.expires:
                return PartsRead([None if item is None else self.entity.decode(item) for item in items], view.count)
            if items is not None and next(pauses, None) is None:
                raise unsettled(self.entity, "TransactGetItems")

    def _each(self, keys: Sequence[tuple[str, str]], how: str, pauses: Iterator[float]) -> list[Wire | None]:
        found = get_all(
            self._store,
            keys,
            Reading(consistent=how != CHEAP),
            pauses,
            key_of=lambda stored: ItemKey(*stored),
            places_of=lambda left: left,
        )
        return [found.get(key) for key in keys]

    def _exact(
        self, partition: str, keys: Sequence[tuple[str, str]], pauses: Iterator[float]
    ) -> list[Wire | None] | None:
        """Return what is stored at all keys at one moment; None after a pause, to try again."""
        gets = [{"Get": {"TableName": self._store.table, "Key": wire_key(key)}} for key in keys]
        try:
            answer = self._store.transport.call("TransactGetItems", {"TransactItems": gets})
        except (ThrottledError, TransactionConflictError) as error:
            if next(pauses, None) is None:
                if isinstance(error, ThrottledError):
                    self._store.throttled(self.entity, partition, error)
                raise
            return None
        return [response.get("Item") for response in answer["Responses"]]

    def _stored_key(self, partition: str, part: int) -> tuple[str, str]:
        # Under every count a part has the same home: its sort key names the shard.
        sort = f"{part:0{PART_DIGITS}d}"
        return home(self.entity, ItemKey(partition, sort), 1), sort
