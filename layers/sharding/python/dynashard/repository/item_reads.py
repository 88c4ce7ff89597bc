"""Reads the stored items of one entity by their keys, and raises the errors that callers get."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from dynashard.entity import EntityDefinition, ItemKey, definition, revision_in
from dynashard.errors import EngineError, ThrottledError, UnprocessedError
from dynashard.repository.conditions import mismatch
from dynashard.repository.home_reader import HomeReader
from dynashard.repository.key_names import key_named, name_of, not_found
from dynashard.repository.projection import Reading
from dynashard.repository.store import E, KeyLike, Store
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire

if TYPE_CHECKING:
    from dynashard.repository.scattered import Scattered


def reader_of(store: Store, entity: EntityDefinition[Any]) -> "HomeReader | Scattered":
    """Return what reads the items of an entity, by its placement."""
    if entity.rule.fixed:
        return HomeReader(store, entity)
    from dynashard.repository.scattered import Scattered  # noqa: PLC0415 - only for random placement

    return Scattered(store, entity)


class ItemReads(Generic[E]):
    """Reads the stored items of one entity. Safe to share between threads.

    Attributes:
        reader: finds the place of an item by its key, and reads it there.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        self.entity: EntityDefinition[E] = definition(model)
        self.reader = reader_of(store, self.entity)
        self._store = store

    def read(self, key: KeyLike, reading: Reading) -> Wire | None:
        """Return the live item with this key, as it is stored."""
        item_key = self.entity.key_of(key)
        try:
            return self.reader.read(item_key, reading)
        except (ThrottledError, UnprocessedError) as error:
            raise self._item_error(error, item_key, key)  # noqa: B904 - it has its cause

    def read_live(self, key: KeyLike, if_match: str | None = None) -> Wire:
        """Return the live item with this key, read consistently for a write that alters it."""
        current = self.read(key, Reading(consistent=True))
        if current is None:
            raise not_found(self.entity, key)
        self.require(if_match, current, key)
        return current

    def require(self, if_match: str | None, current: Wire | None, key: KeyLike) -> None:
        """Refuse an item, None if there is none, that is not at the revision that a caller names."""
        revision = revision_in(current) if current else None
        if if_match is not None and revision != if_match:
            raise mismatch(name_of(self.entity, key), revision)

    def _item_error(self, error: ThrottledError | UnprocessedError, item_key: ItemKey, key: KeyLike) -> EngineError:
        """A caller's error for one item that could not be read or written in time."""
        if isinstance(error, ThrottledError):
            self.report_throttle(error, [item_key])
            return error
        reported, cause = self.batch_error(error, {item_key: key}), error.__cause__
        # For one item, the cause is more useful than the list of keys that are left.
        return cause if isinstance(cause, EngineError) else reported

    def batch_error(self, error: UnprocessedError, names: Mapping[ItemKey, KeyLike]) -> UnprocessedError:
        """Return the error for keys that are left, named as the caller names them."""
        left = [ItemKey(str(key[PK]), str(key[SK])) for key in error.keys]
        cause = error.__cause__
        if cause is None:
            cause = ThrottledError(str(error), operation=error.operation, aws_code=error.aws_code)
        if isinstance(cause, ThrottledError):
            self.report_throttle(cause, left)
        keys = [key_named(self.entity, names[key]) for key in left]
        return UnprocessedError(str(error), operation=error.operation, keys=keys)

    def report_throttle(self, error: ThrottledError, keys: Iterable[ItemKey]) -> None:
        """Report a throttle of items that outlasted the retries."""
        for partition in dict.fromkeys(key.partition for key in keys):
            self._store.throttled(self.entity, partition, error)
