"""Many items at a time, without conditions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dynashard.entity import ItemKey
from dynashard.errors import DynashardError, InvalidKeyError, OutcomeUnknownError, UnprocessedError
from dynashard.repository.batch import Reading
from dynashard.repository.items import E, KeyLike
from dynashard.repository.prepared_writes import PreparedWrites
from dynashard.repository.writes import Kind, Write
from dynashard.routing import rule_of
from dynashard.schema import PK, REV, SK
from dynashard.transport.deadline import evidence


class Batches(PreparedWrites[E]):
    """Reads and writes of many items."""

    def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False) -> list[E | None]:
        """The live items with these keys, in the order of the keys; None for those that have none.

        Raises:
            UnprocessedError: with the keys that could not be read in time.

        Cost: what `find` costs for each, 1 round trip for 100 keys, up to 16 at a time; 1 more for those that have
        moved while their shard count changes. With random placement, that for every shard.
        """
        wanted = [self._entity.key_of(key) for key in keys]
        names = dict(zip(wanted, keys, strict=True))
        try:
            found = self._reader.read_all(list(names), Reading(consistent))
        except UnprocessedError as error:
            raise self._told(error, names) from error.__cause__
        items = (found.get(key) for key in wanted)
        return [None if item is None else self._entity.decode(item) for item in items]

    def batch_write(self, *, put: Sequence[E] = (), delete: Sequence[KeyLike] = ()) -> None:
        """Store and delete many items, each whether or not its key had one.

        There is no condition and no order between them. An item that was read from the store keeps its creation
        stamp; others are stamped as created now. With random placement, items that were never stored get a shard
        drawn, whatever other shards hold.

        Raises:
            InvalidKeyError: two of them have one key.
            InvalidValueError, ItemTooLargeError: before anything is sent.
            UnprocessedError: with the keys that could not be written in time; the others are written.
            OutcomeUnknownError: with the keys of which no answer came and nothing stored proves anything, and with
                those that were certainly not written; the others are written.

        Cost: 1 write unit each, 1 round trip for 25, up to 16 at a time. While a shard count changes, its items are
        written one by one, up to 16 at a time: 4 write units for those that are new at their new home. With random
        placement, what was stored before or is deleted is looked for first, for 1 read unit a shard.
        """
        now, homes = self._store.now(), rule_of(self._entity).fixed
        writes: list[Write] = []
        names: dict[ItemKey, KeyLike] = {}
        for item in put:
            key = self._add_once(names, item)
            wire = self._prepare(item, key, created=self._created(item))
            kind = Kind.UPSERT if homes or item.revision is not None else Kind.CREATE
            writes.append(Write(kind, key, "PutItem", now, wire, revision=wire[REV]["S"]))
        writes += [Write(Kind.CHANGE, self._add_once(names, key), "DeleteItem", now) for key in delete]
        left: UnprocessedError | None = None
        try:
            doubtful = self._writer.write_all(writes)
        except UnprocessedError as error:
            left = self._told(error, names)
            unknown = {ItemKey(str(key[PK]), str(key[SK])) for key in error.unknown}
            doubtful = [write for write in writes if write.key in unknown]
            cause = error.__cause__
        if doubtful := self._unproved(doubtful):
            raise self._unknown_of_many([names[write.key] for write in doubtful], () if left is None else left.keys)
        if left is not None:
            raise left from cause

    def _unproved(self, writes: Sequence[Write]) -> list[Write]:
        """Those of some writes that nothing stored proves to have been done. Cost: a consistent read of each put."""
        puts = [write.key for write in writes if write.revision]
        found: Mapping[ItemKey, dict[str, Any]] = {}
        if puts:
            with suppress(DynashardError), evidence():
                found = self._reader.read_all(puts, Reading(consistent=True))
        return [write for write in writes if not write.did(found.get(write.key))]

    def _unknown_of_many(
        self, keys: Sequence[KeyLike], unprocessed: Sequence[Mapping[str, Any]]
    ) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"No answer came for {len(keys)} keys of a batch: these may have been written, or may still be. Read them "
            "before you write them again, which may undo what others wrote since.",
            operation="BatchWriteItem",
            keys=[self._key_named(key) for key in keys],
            unprocessed=unprocessed,
        )

    def _add_once(self, names: dict[ItemKey, KeyLike], key: KeyLike) -> ItemKey:
        item_key = self._entity.key_of(key)
        if item_key in names:
            raise InvalidKeyError(f"{self._name(key)} is written twice in one batch; which one should win?")
        names[item_key] = key
        return item_key
