"""Many items at a time, without conditions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dynashard.errors import InvalidKeyError, UnprocessedError
from dynashard.keys import key_text
from dynashard.repository.batch import StoredKey, get_all, stored_key, write_all
from dynashard.repository.conditions import is_live
from dynashard.repository.items import E, Items, KeyLike
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire


class Batches(Items[E]):
    """Reads and writes of many items."""

    def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False) -> list[E | None]:
        """The live items with these keys, in the order of the keys; None for those that have none.

        Raises:
            UnprocessedError: with the keys that could not be read in time.

        Cost: what `find` costs for each, 1 round trip for 100 keys, up to 16 at a time.
        """
        entity, store = self._entity, self._store
        places = [store.router.stored_key(entity, entity.key_of(key)) for key in keys]
        wanted = {stored_key(place): place for place in places}
        with self._named({stored_key(place): key for place, key in zip(places, keys, strict=True)}):
            found = get_all(
                store.transport, store.table, list(wanted.values()), consistent=consistent, patience=store.patience
            )
        now = store.now()
        items = (found.get(stored_key(place)) for place in places)
        return [entity.decode(item) if item is not None and is_live(item, now) else None for item in items]

    def batch_write(self, *, put: Sequence[E] = (), delete: Sequence[KeyLike] = ()) -> None:
        """Store and delete many items, each whether or not its key had one.

        There is no condition and no order between them. An item that was read from the store keeps its creation
        stamp; others are stamped as created now.

        Raises:
            InvalidKeyError: two of them have one key.
            InvalidValueError, ItemTooLargeError: before anything is sent.
            UnprocessedError: with the keys that could not be written in time; the others are written.

        Cost: 1 write unit each, 1 round trip for 25, up to 16 at a time.
        """
        entity, store = self._entity, self._store
        actions: list[Wire] = []
        names: dict[StoredKey, KeyLike] = {}
        for item in put:
            wire = self._prepare(item, created=self._created(item))
            actions.append({"PutRequest": {"Item": wire}})
            self._take(names, wire, item)
        for key in delete:
            place = store.router.stored_key(entity, entity.key_of(key))
            actions.append({"DeleteRequest": {"Key": place}})
            self._take(names, place, key)
        with self._named(names):
            write_all(store.transport, store.table, actions, patience=store.patience)

    def _take(self, names: dict[StoredKey, KeyLike], place: Wire, key: KeyLike) -> None:
        if stored_key(place) in names:
            raise InvalidKeyError(f"{self._name(key)} is written twice in one batch; which one should win?")
        names[stored_key(place)] = key

    @contextmanager
    def _named(self, names: Mapping[StoredKey, KeyLike]) -> Iterator[None]:
        """Has keys that were left over named as the caller names them."""
        try:
            yield
        except UnprocessedError as error:
            left = [self._key_fields(names[key[PK], key[SK]]) for key in error.keys]
            keys = [{name: _plain(name, fields[name]) for name in self._entity.key_fields} for fields in left]
            raise UnprocessedError(str(error), operation=error.operation, keys=keys) from error.__cause__


def _plain(name: str, value: Any) -> str | int:
    return value if type(value) in (str, int) else key_text(name, value)
