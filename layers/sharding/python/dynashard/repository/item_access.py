"""The stored items of one entity: reads them and sends their writes, and raises the errors that callers get."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    InvalidValueError,
    OutcomeUnknownError,
    ThrottledError,
    UnprocessedError,
)
from dynashard.repository.conditions import is_live, is_marker, later_version, refusal
from dynashard.repository.evidence import Proof, gone, judge
from dynashard.repository.home_reader import HomeReader
from dynashard.repository.home_writer import HomeWriter
from dynashard.repository.item_reads import ItemReads
from dynashard.repository.key_names import key_named, name_of
from dynashard.repository.projection import Reading
from dynashard.repository.store import E, KeyLike, Store
from dynashard.repository.updates import FieldUpdates, applied
from dynashard.repository.write import Done, Write
from dynashard.transport.deadline import evidence


class ItemAccess(ItemReads[E]):
    """Reads the stored items of one entity and sends their writes. Safe to share between threads.

    Attributes:
        writer: finds the place of an item by its key, and writes it there.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        super().__init__(store, model)
        self.writer = HomeWriter(store, self.entity) if isinstance(self.reader, HomeReader) else self.reader

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
        if (later := later_version(self.entity, failed.item)) is not None and is_live(failed.item, write.now):
            return later
        return refusal(failed.item, name=name_of(self.entity, key), now=write.now, if_match=write.if_match)

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

    def sum_refused(self, refused: InvalidValueError, key: KeyLike, updates: FieldUpdates) -> InvalidValueError:
        """Return DynamoDB's refusal of a sum, with the field at fault if the item shows it. Cost: a consistent read."""
        stored = self.read(key, Reading(consistent=True))
        current = None if stored is None else self.entity.decode(stored)
        try:
            if current is not None:
                applied(self.entity, current, updates)
        except InvalidValueError as named:
            return named
        return refused

    def require_decodable(self, key: KeyLike) -> None:
        """Raise `UndecodableItemError` if a stored item does not fit its entity. Cost: a consistent read.

        DynamoDB refuses to add to what is neither a number nor a set, and does not name it.
        """
        if (stored := self.read(key, Reading(consistent=True))) is not None:
            self.entity.decode(stored)


def _advice(write: Write) -> str:
    """What a caller can do about a write with an unknown outcome."""
    if not write.revision:
        return "Read the item: if it is still there, delete it again; if it is gone, you or somebody else deleted it."
    applied = f"Read the item consistently: if its revision is {write.revision}, it was applied."
    if write.exact:
        return f"{applied} If its revision is still the one that you named, send the same again."
    return f"{applied} If not, decide by what you read: sending the same again may undo what others wrote since."
