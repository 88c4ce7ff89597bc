"""Items of random placement: a shard is drawn for each new one, and an item is looked for in all of them.

Nothing moves, so there are no relocation markers. While a count changes, writers draw among the fewer shards and
readers look into the more.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from dynashard.entity import EntityDefinition, ItemKey, revision_in
from dynashard.errors import ConditionFailedError, DynashardError, EngineError, TransactionConflictError
from dynashard.repository.batch import BATCH_WRITE, get_all, write_once
from dynashard.repository.conditions import is_live
from dynashard.repository.projection import LIVENESS, Reading
from dynashard.repository.retry_policy import Unfinished, run_rounds, unsettled
from dynashard.repository.store import Store
from dynashard.repository.write import Done, Kind, Write, send
from dynashard.routing import StoredKey, shard_keys
from dynashard.schema import PK, REV
from dynashard.transport.interface import Wire

_SEARCH = Reading(consistent=True, fields=f"{LIVENESS}, {REV}")


class Scattered:
    """Reads and writes items of random placement. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def read(self, key: ItemKey, reading: Reading) -> Wire | None:
        """Return the live item with this key; see `HomeReader.read`. Cost: a get for each shard, 100 in a request."""
        return self.read_all([key], reading).get(key)

    def read_all(self, keys: Sequence[ItemKey], reading: Reading) -> Mapping[ItemKey, Wire]:
        """Return the live items with these keys; see `HomeReader.read_all`. Cost: what `read` costs, for each key."""
        return {key: items[0] for key, items in self._search(keys, reading).items()}

    def write(self, write: Write) -> Done:
        """Do one write; see `HomeWriter.write`. Cost: 1 write; all but creates first read 1 unit in each shard."""
        drawn, pauses = self._draw(write.key), self._store.retry_policy.pauses()
        while True:
            refused: EngineError | None = None
            try:
                return self._attempt(write, drawn)
            except TransactionConflictError as conflict:
                refused = conflict
            except ConditionFailedError as failed:
                if write.kind is not Kind.UPSERT or write.refused_unread(failed.item):
                    raise
            if next(pauses, None) is None:
                raise refused or unsettled(self._entity, write.operation)

    def write_all(self, writes: Sequence[Write]) -> Unfinished[Write]:
        """Do many writes; see `HomeWriter.write_all`. Creates replace what their drawn shards hold.

        Cost: one BatchWriteItem for 25, 16 at a time; what must be found first is looked for as `read_all` does.
        """
        try:
            spots = self._spots(writes)
        except DynashardError as error:
            return Unfinished.unsent(writes, error)
        rest = run_rounds(
            BATCH_WRITE,
            spots,
            lambda left: write_once(self._store, {spot: writes[spots[spot]] for spot in left}),
            self._store.retry_policy.pauses(),
        )
        # An item that stands in two shards is deleted in both: each write has one outcome, the least certain one.
        unknown = dict.fromkeys(spots[spot] for spot in rest.unknown)
        failed = {spots[spot]: error for spot, error in rest.failed if spots[spot] not in unknown}
        left = dict.fromkeys(spots[spot] for spot in rest.members if not {spots[spot]} & {*unknown, *failed})
        return Unfinished(
            [writes[at] for at in left],
            rest.cause,
            [writes[at] for at in unknown],
            [(writes[at], error) for at, error in failed.items()],
        )

    def _spots(self, writes: Sequence[Write]) -> dict[StoredKey, int]:
        """The stored keys to write, each with the position of its write."""
        sought = self._search([write.key for write in writes if write.kind is not Kind.CREATE], _SEARCH)
        spots: dict[StoredKey, int] = {}
        for at, write in enumerate(writes):
            places = [item[PK]["S"] for item in sought.get(write.key, ())]
            if write.item is not None:
                places = places[:1] or [self._draw(write.key)]
            spots.update(((place, write.key.sort), at) for place in places)
        return spots

    def _attempt(self, write: Write, drawn: str) -> Done:
        if write.kind is Kind.CREATE:
            return send(self._store, write, drawn, write.absent_condition())
        found = self._search([write.key], _SEARCH).get(write.key, ())
        if write.operation == "DeleteItem" and len(found) > 1:
            self._delete_others(write, *found)
        if found:
            return send(self._store, write, found[0][PK]["S"], write.live_condition())
        if write.kind is Kind.UPSERT:
            return send(self._store, write.creation(), drawn, write.absent_condition())
        raise ConditionFailedError("No live item has the key.", operation=write.operation, item=None)

    def _delete_others(self, write: Write, first: Wire, *others: Wire) -> None:
        """Delete all items of a key but the first: an item that was created twice may be in two shards.

        Readers see the first, so it goes last: otherwise another would appear in its place if this ends in between.
        """
        if write.if_match not in (None, revision_in(first)):
            # The delete is about to be refused, so nothing may be gone after it.
            return
        for other in others:
            # Each creation has a revision of its own, and the caller has named that of the first.
            own = replace(write, if_match=revision_in(other)) if write.exact else write
            # No update reaches it, so a failed condition says that it is gone.
            with suppress(ConditionFailedError):
                send(self._store, own, other[PK]["S"], own.live_condition())

    def _search(self, keys: Sequence[ItemKey], reading: Reading) -> dict[ItemKey, list[Wire]]:
        """The live items with these keys; those of each key in the order of shards."""
        spots = {(place, key.sort): key for key in keys for place in self._shards(key, max)}
        pauses = self._store.retry_policy.pauses()
        stored = get_all(self._store, spots, reading, pauses, key_of=spots.__getitem__, places_of=lambda left: left)
        now = self._store.now()
        found: dict[ItemKey, list[Wire]] = {}
        for spot, key in spots.items():
            if is_live(stored.get(spot), now):
                found.setdefault(key, []).append(stored[spot])
        return found

    def _draw(self, key: ItemKey) -> str:
        # While the count grows, readers know the new shards before writers use them; while it falls, writers leave the
        # others before readers do.
        places = self._shards(key, min)
        return places[int(self._store.runtime.random() * len(places))]

    def _shards(self, key: ItemKey, choose: Callable[[int, int], int]) -> list[str]:
        """The stored partition keys of a logical partition, under one of its counts."""
        view = self._store.router.topology.view(self._entity, key.partition)
        count = choose(view.count, view.new_count)
        return shard_keys(self._entity.rule, key.partition, self._entity.separator, count)
