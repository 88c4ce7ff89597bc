"""Bring the copies of a source up to date, in whatever order and however often its changes arrive.

Changes may come twice, late, and out of order, and other processes may work on the same source. So a change is only a
signal to look: the source is read, its copies are read, and what differs is written in transactions which demand
that the source is still at the revision that was read. Nothing stale can be written.

One gap is left: plain reads may see a part of a transaction, and then take an old copy for a right one. So each writer
reads the source again after its transaction, and starts again if the source has changed. If the writer dies before, its
change is not acknowledged and comes again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dynashard.codec import item_size
from dynashard.entity import Entity, EntityDefinition, ItemKey, definition
from dynashard.errors import InvalidKeyError, InvalidValueError, TransactionRefusedError, WriteContendedError
from dynashard.repository.retry_policy import map_concurrently
from dynashard.schema import REV, TYPE
from dynashard.service import Dynashard
from dynashard.transactions import Check, Delete, Put
from dynashard_patterns.batches import bounded
from dynashard_patterns.changes import Change
from dynashard_patterns.copies.drift import Difference, Drift

CONCURRENCY: Final = 8
"""Sources whose copies are brought up to date at a time."""
_MOST_STILL: Final = 90
_MOST_MOVING: Final = 48
"""Copies in one transaction: 100 stored writes are the most, and a create takes two while its key moves."""
_MOST_BYTES: Final = 3 * 1024 * 1024
_PAGE: Final = 1000


class Materializer:
    """Brings copies up to date with their sources. Safe to share between threads."""

    def __init__(
        self,
        db: Dynashard,
        of: type[Entity],
        copy: type[Entity],
        make: Callable[[Any], Iterable[Entity]],
        by: Mapping[str, str],
    ) -> None:
        self.db = db
        self.of = of
        self.copy = copy
        self._make = make
        self._by = dict(by)
        self._sources = db.collection(of)
        self._copies = db.collection(copy)
        self._entity = definition(copy)

    def handle(self, changes: Sequence[Change[Any]]) -> None:
        """Bring the copies of changed sources up to date; several changes of one source are one signal."""
        keys = {tuple(change.key.values()): change.key for change in changes}
        map_concurrently(self.carry, list(keys.values()), CONCURRENCY)

    def carry(self, key: Mapping[str, Any]) -> Drift:
        """Bring the copies of one source up to date.

        Returns: the drift that was repaired.

        Raises:
            WriteContendedError: the source kept changing; try again.
            InvalidValueError: `make` returned an item that is not a copy of this source.
            TransactionRefusedError: another item has a value of a copy that must be unique.

        Cost: a consistent read of the source and a consistent Query of its copies. If they differ, 2 write units for
        each copy that does (and its index entries), 2 for the check of the source in each transaction, and one more
        read of the source.
        """
        found = Drift()
        pauses = self.db.store.retry_policy.pauses()
        source = self._read(key)
        while True:
            differences = self._differences(key, source)
            if not differences:
                # A source that has changed since it was read has a signal of its own.
                return found
            written = self._write(key, source, differences)
            found += Drift.of(written)
            before, source = source, self._read(key)
            if len(written) == len(differences) and _revision(before) == _revision(source):
                return found
            if next(pauses, None) is None:
                raise WriteContendedError(f"{self._entity.name}: their source {dict(key)} keeps changing; try again")

    def drift(self, key: Mapping[str, Any]) -> Drift:
        """Return how the copies of one source differ from it. Cost: two reads, as of `carry`."""
        return Drift.of(self._differences(key, self._read(key)))

    def source_of(self, copy: Mapping[str, Any]) -> dict[str, Any]:
        """The key fields of the source that a copy's fields point to."""
        return {theirs: copy[mine] for mine, theirs in self._by.items()}

    def absent(self, keys: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of these keys under which no source lives. Cost: as a consistent `batch_get`.

        An undecodable source is there, so its copies stay.
        """
        found = self._sources.batch_get(keys, consistent=True)
        return [key for at, key in enumerate(keys) if found[at] is None and at not in found.left_out]

    def _read(self, key: Mapping[str, Any]) -> Entity | None:
        return self._sources.find(key, consistent=True)

    def _differences(self, key: Mapping[str, Any], source: Entity | None) -> list[Difference]:
        """Return the copies that differ from what a source says: missing ones, wrong ones, then those too many."""
        partition = {mine: key[theirs] for mine, theirs in self._by.items()}
        at = partition_of(self._entity, self._by, key)
        stored = {self._entity.key_of(copy): copy for copy in self._stored(partition)}
        wanted = self._wanted(source, at)
        missing = [Difference(None, copy) for at, copy in wanted.items() if at not in stored]
        wrong = [
            Difference(stored[at], copy)
            for at, copy in wanted.items()
            if at in stored and not self._same(copy, stored[at])
        ]
        return [*missing, *wrong, *(Difference(copy, None) for at, copy in stored.items() if at not in wanted)]

    def _stored(self, partition: Mapping[str, Any]) -> Iterator[Entity]:
        for page in self._copies.pages(partition, order="shard", limit=_PAGE, consistent=True):
            yield from page.items

    def _wanted(self, source: Entity | None, partition: str) -> dict[ItemKey, Entity]:
        wanted: dict[ItemKey, Entity] = {}
        for copy in () if source is None else self._make(source):
            key = self._entity.key_of(copy)
            if key.partition != partition:
                raise InvalidValueError(
                    f"{self._entity.name}: a copy was made for {key.partition}, not for {partition}"
                )
            if self._lasts(copy):
                wanted[key] = copy
        return wanted

    def _lasts(self, copy: Entity) -> bool:
        """Whether a copy is to be seen: one that has expired already would be missed again by every look."""
        expires = getattr(copy, self._entity.expires) if self._entity.expires else None
        return expires is None or int(expires.timestamp()) > self.db.store.now()

    def _same(self, wanted: Entity, stored: Entity) -> bool:
        """Whether a copy is stored as wanted, apart from stamps."""
        # With a type and a revision, as it is stored: only then values of another version are read.
        own = {TYPE: {"S": self._entity.name}, REV: {"S": ""}, **self._entity.versions.stored}
        as_stored = self._entity.decode(self._entity.encode(wanted.__dict__) | own)
        names = type(wanted).model_fields.keys() - self._entity.server_fields
        return all(as_stored.__dict__[name] == stored.__dict__[name] for name in names)

    def _write(
        self, key: Mapping[str, Any], source: Entity | None, differences: Sequence[Difference]
    ) -> list[Difference]:
        """Write copies while the source is unchanged; return those that were written."""
        check = Check(self.of, key, _revision(source))
        most = _MOST_STILL if self._entity.shards is None else _MOST_MOVING
        # A copy takes new unique values and leaves others, a write for each.
        most //= 1 + 2 * len(self._entity.unique)
        written: list[Difference] = []
        for chunk in bounded(differences, self._size, most=most, most_size=_MOST_BYTES):
            try:
                self.db.transact(check, *map(self._step, chunk))
            except TransactionRefusedError as refused:
                # The check of the source comes first. A copy that is refused, because another one has a value that must
                # be unique, would be refused again.
                if refused.step:
                    raise
                return written
            written += chunk
        return written

    def _step(self, difference: Difference) -> Put | Delete:
        if difference.wanted is not None:
            return Put(difference.wanted)
        assert difference.stored is not None  # noqa: S101 - one of the two is there
        return Delete(self.copy, difference.stored, missing="ignore")

    def _size(self, difference: Difference) -> int:
        return 0 if difference.wanted is None else item_size(self._entity.encode(difference.wanted.__dict__))


def partition_of(copy: EntityDefinition[Any], by: Mapping[str, str], source: Mapping[str, Any]) -> str:
    """Return the logical partition of the copies of a source.

    Raises:
        InvalidKeyError: the copies' keys cannot hold the source's.
    """
    try:
        return copy.logical_partition({mine: source[theirs] for mine, theirs in by.items()})
    except InvalidKeyError as error:
        name = by.get(error.field or "", error.field)
        key = {theirs: str(source[theirs]) for theirs in by.values()}
        raise InvalidKeyError(
            f"{name}: the keys of its copies, {copy.name}, cannot hold {key}: {error}", field=name
        ) from error


def _revision(source: Entity | None) -> str | None:
    return None if source is None else source.revision
