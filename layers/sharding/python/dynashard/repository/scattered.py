"""Items whose placement is random: a shard is drawn for each new one, and whoever has only a key looks into all.

Nothing moves and no marks stand. While a count changes, writers draw among the fewer shards and readers look into the
more, so that no phase needs anything else.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import ConditionFailedError, EngineError, TransactionConflictError
from dynashard.repository.batch import LIVENESS, WRITE_WAVE, Reading, StoredKey, get_all, write_once
from dynashard.repository.conditions import is_live
from dynashard.repository.outcomes import unsettled
from dynashard.repository.retry_policy import run_rounds
from dynashard.repository.store import Store
from dynashard.repository.writes import Done, Kind, Write, send
from dynashard.routing import rule_of, shard_keys
from dynashard.schema import PK
from dynashard.transport.interface import Wire

_SEARCH = Reading(consistent=True, fields=LIVENESS)


class Scattered:
    """Reads and writes items, for placements that give keys no home. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def read(self, key: ItemKey, reading: Reading) -> Wire | None:
        """The live item with this key; see `HomeReader.read`.

        Cost: what a get costs, for each shard; one BatchGetItem for 100 shards.
        """
        return self.read_all([key], reading).get(key)

    def read_all(self, keys: Sequence[ItemKey], reading: Reading) -> Mapping[ItemKey, Wire]:
        """The live items with these keys; see `HomeReader.read_all`.

        Cost: what `read` costs, for each key; as many BatchGetItem as it takes, 16 at a time.
        """
        return {key: items[0] for key, items in self._search(keys, reading).items()}

    def write(self, write: Write, pauses: Iterator[float] | None = None) -> Done:
        """Do one write; see `HomeWriter.write`.

        Cost: a create, 1 write; all others first find the item, for 1 read unit a shard.
        """
        drawn = self._draw(write.key)
        while True:
            refused: EngineError | None = None
            try:
                return self._attempt(write, drawn)
            except TransactionConflictError as conflict:
                refused = conflict
            except ConditionFailedError:
                if write.kind is not Kind.UPSERT:
                    raise
            pauses = self._store.retry_policy.pauses() if pauses is None else pauses
            if next(pauses, None) is None:
                raise refused or unsettled(self._entity, write.operation)

    def write_all(self, writes: Sequence[Write]) -> list[Write]:
        """Do many writes; see `HomeWriter.write_all`.

        Creates are put into the shards that are drawn for them, and what stands there is written over.

        Cost: one BatchWriteItem for 25, 16 at a time; what must be found first is looked for as `read_all` does.
        """
        sought = self._search([write.key for write in writes if write.kind is not Kind.CREATE], _SEARCH)
        spots: dict[StoredKey, Write] = {}
        for write in writes:
            places = [item[PK]["S"] for item in sought.get(write.key, ())]
            if write.item is not None:
                places = places[:1] or [self._draw(write.key)]
            spots.update(((place, write.key.sort), write) for place in places)
        unknown = run_rounds(
            spots,
            lambda left: write_once(self._store, {spot: spots[spot] for spot in left}),
            self._store.retry_policy.pauses(),
            wave=WRITE_WAVE,
            operation="BatchWriteItem",
            key_of=lambda spot: spots[spot].key,
        )
        return [spots[spot] for spot in unknown]

    def _attempt(self, write: Write, drawn: str) -> Done:
        if write.kind is Kind.CREATE:
            return send(self._store, write, drawn, write.creating())
        places = [item[PK]["S"] for found in self._search([write.key], _SEARCH).values() for item in found]
        if write.operation == "DeleteItem":
            # One who creates an item twice may have drawn two shards for it.
            for place in places[1:]:
                send(self._store, write, place, write.changing())
        if places:
            return send(self._store, write, places[0], write.changing())
        if write.kind is Kind.UPSERT:
            return send(self._store, write, drawn, write.creating())
        raise ConditionFailedError("No live item has the key.", operation=write.operation, item=None)

    def _search(self, keys: Sequence[ItemKey], reading: Reading) -> dict[ItemKey, list[Wire]]:
        """The live items with these keys, wherever they are; those of each key in the order of shards."""
        spots = {(place, key.sort): key for key in keys for place in self._readable(key.partition)}
        stored = get_all(self._store, spots, reading, self._store.retry_policy.pauses())
        now = self._store.now()
        found: dict[ItemKey, list[Wire]] = {}
        for spot, key in spots.items():
            if is_live(stored.get(spot), now):
                found.setdefault(key, []).append(stored[spot])
        return found

    def _readable(self, partition: str) -> list[str]:
        """All stored partition keys where items of a logical partition may be."""
        view = self._store.router.topology.view(self._entity, partition)
        count = max(view.count, view.new_count)
        return shard_keys(rule_of(self._entity), partition, self._entity.separator, count)

    def _draw(self, key: ItemKey) -> str:
        """A stored partition key for a new item."""
        view = self._store.router.topology.view(self._entity, key.partition)
        count = min(view.count, view.new_count)
        places = shard_keys(rule_of(self._entity), key.partition, self._entity.separator, count)
        return places[int(self._store.runtime.random() * count)]
