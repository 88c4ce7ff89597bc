"""The stored items of one entity: reads them and sends their writes, and raises the errors that callers get."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Generic

from dynashard.entity import EntityDefinition, ItemKey, definition, revision_in
from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    InvalidValueError,
    OutcomeUnknownError,
    ThrottledError,
    UnprocessedError,
)
from dynashard.repository.batch import Reading
from dynashard.repository.conditions import is_marker, mismatch, refusal
from dynashard.repository.evidence import Proof, gone, judge
from dynashard.repository.home_reader import HomeReader
from dynashard.repository.home_writer import HomeWriter
from dynashard.repository.key_names import key_named, name_of, not_found
from dynashard.repository.scattered import Scattered
from dynashard.repository.store import E, KeyLike, Store
from dynashard.repository.updates import FieldUpdates, fields_after
from dynashard.repository.write import Done, Write
from dynashard.schema import PK, SK
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire


def reader_of(store: Store, entity: EntityDefinition[Any]) -> HomeReader | Scattered:
    """Return what reads the items of an entity, by its placement."""
    return HomeReader(store, entity) if entity.rule.fixed else Scattered(store, entity)


class ItemAccess(Generic[E]):
    """Reads the stored items of one entity and sends their writes. Safe to share between threads.

    Attributes:
        reader, writer: find the place of an item by its key, and read or write it there.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        self.entity: EntityDefinition[E] = definition(model)
        self.reader = reader_of(store, self.entity)
        self.writer = self.reader if isinstance(self.reader, Scattered) else HomeWriter(store, self.entity)
        self._store = store

    def read(self, key: KeyLike, reading: Reading) -> Wire | None:
        """Return the live item with this key, as it is stored."""
        item_key = self.entity.key_of(key)
        try:
            return self.reader.read(item_key, reading)
        except (ThrottledError, UnprocessedError) as error:
            raise self._item_error(error, item_key, key)  # noqa: B904 - it has its cause

    def write(self, write: Write, key: KeyLike) -> Done:
        """Do a write of the item with this key."""
        try:
            return self.writer.write(write)
        except (ThrottledError, UnprocessedError) as error:
            raise self._item_error(error, write.key, key)  # noqa: B904 - it has its cause
        except OutcomeUnknownError as unknown:
            return self._settled(write, key, unknown, None)
        except ConditionFailedError as failed:
            if not failed.ambiguous:
                raise
            return self._settled(write, key, failed, failed.item)

    def do(self, write: Write, key: KeyLike) -> Done:
        """Do a write of the item with this key; raise a caller's error if its condition fails."""
        try:
            return self.write(write, key)
        except ConditionFailedError as failed:
            raise self.refusal_of(failed, key, write) from None

    def refusal_of(self, failed: ConditionFailedError, key: KeyLike, write: Write) -> DynashardError:
        """Return a caller's error for a failed condition."""
        return refusal(failed.item, name=name_of(self.entity, key), now=write.now, if_match=write.if_match)

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

    def _settled(self, write: Write, key: KeyLike, error: EngineError, found: Mapping[str, Any] | None) -> Done:
        """Determine the outcome of a write after an ambiguous attempt, by what is stored.

        Cost: 1 consistent read, unless an item made the condition fail or nothing can prove anything.
        """
        with suppress(DynashardError), evidence():
            if (found is None or is_marker(found)) and (write.revision or write.exact):
                found = self.reader.read(write.key, Reading(consistent=True))
            if write.guarded and gone(write, found):
                return Done(proved=True)
        verdict = judge(write, found)
        if verdict is Proof.DONE:
            return Done(found, proved=True)
        if verdict is Proof.REFUSED:
            raise ConditionFailedError(str(error), operation=write.operation, item=found) from error
        raise self.unknown(write, key) from error

    def unknown(self, write: Write, key: KeyLike) -> OutcomeUnknownError:
        """Return the error for a write with an unknown outcome."""
        return OutcomeUnknownError(
            f"{name_of(self.entity, key)}: no answer came; the write may have been applied, or may still be. "
            f"{_advice(write)}",
            operation=write.operation,
            key=key_named(self.entity, key),
            revision=write.revision or None,
        )

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

    def sum_refused(self, refused: InvalidValueError, key: KeyLike, updates: FieldUpdates) -> InvalidValueError:
        """Return DynamoDB's refusal of a sum, with the field at fault if the item shows it. Cost: a consistent read."""
        stored = self.read(key, Reading(consistent=True))
        current = None if stored is None else self.entity.decode(stored)
        try:
            if current is not None:
                fields_after(self.entity, current, updates)
        except InvalidValueError as named:
            return named
        return refused


def _advice(write: Write) -> str:
    """What a caller can do about a write with an unknown outcome."""
    if not write.revision:
        return "Read the item: if it is still there, delete it again; if it is gone, you or somebody else deleted it."
    applied = f"Read the item consistently: if its revision is {write.revision}, it was applied."
    if write.exact:
        return f"{applied} If its revision is still the one that you named, send the same again."
    return f"{applied} If not, decide by what you read: sending the same again may undo what others wrote since."
