"""What single items and batches have in common: from an entity to what is stored, and from errors to what is told."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

from dynashard.entity import Entity, EntityDefinition, ItemKey, definition
from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    OutcomeUnknownError,
    ThrottledError,
    UnprocessedError,
)
from dynashard.keys import key_text
from dynashard.repository.batch import Reading
from dynashard.repository.conditions import is_marker, mismatch, refusal
from dynashard.repository.evidence import Proof, gone, judge
from dynashard.repository.io_by_placement import reader_and_writer
from dynashard.repository.store import Store
from dynashard.repository.writes import Done, Write
from dynashard.schema import PK, SK
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire

E = TypeVar("E", bound=Entity)

KeyLike = Mapping[str, Any] | Entity
"""An item, or the fields of its key: `{"tenant_id": "abc", "id": "123"}`."""


class Items(Generic[E]):
    """The items of one entity in a store."""

    def __init__(self, store: Store, model: type[E]) -> None:
        self._store = store
        self._entity: EntityDefinition[E] = definition(model)
        self._reader, self._writer = reader_and_writer(store, self._entity)

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        return self._entity

    def _read(self, key: KeyLike, reading: Reading) -> Wire | None:
        """The live item with this key, as it is stored."""
        item_key = self._entity.key_of(key)
        try:
            return self._reader.read(item_key, reading)
        except (ThrottledError, UnprocessedError) as error:
            told = self._told_of_one(error, item_key, key)
            raise told from told.__cause__

    def _write(self, write: Write, key: KeyLike) -> Done:
        """Do a write of the item with this key."""
        try:
            return self._writer.write(write)
        except (ThrottledError, UnprocessedError) as error:
            told = self._told_of_one(error, write.key, key)
            raise told from told.__cause__
        except OutcomeUnknownError as unknown:
            return self._settled(write, key, unknown, None)
        except ConditionFailedError as failed:
            if not failed.ambiguous:
                raise
            return self._settled(write, key, failed, failed.item)

    def _do(self, write: Write, key: KeyLike) -> Done:
        """Do a write of the item with this key; raise for a caller what refuses it."""
        try:
            return self._write(write, key)
        except ConditionFailedError as failed:
            raise self._refusal(failed, key, write) from None

    def _refusal(self, failed: ConditionFailedError, key: KeyLike, write: Write) -> DynashardError:
        return refusal(failed, name=self._name(key), now=write.now, if_match=write.if_match)

    def _require(self, if_match: str | None, revision: str | None, key: KeyLike) -> None:
        """Refuse an item that is not at the revision that a caller names, if one is named; None if there is no item."""
        if if_match is not None and revision != if_match:
            raise mismatch(self._name(key), revision)

    def _settled(self, write: Write, key: KeyLike, error: EngineError, found: Mapping[str, Any] | None) -> Done:
        """What a write came to of which an attempt was ambiguous, by what is stored.

        Raises:
            ConditionFailedError: it was not done, and never will be.
            OutcomeUnknownError: nothing proves either.

        Cost: 1 consistent read, unless `found` was stored in its way or nothing can prove anything.
        """
        if (found is None or is_marker(found)) and (write.revision or write.exact):
            with suppress(DynashardError), evidence():
                found = self._reader.read(write.key, Reading(consistent=True))
                if write.guarded and gone(write, found):
                    return Done(proved=True)
        elif write.guarded and gone(write, found):
            return Done(proved=True)
        verdict = judge(write, found, ambiguous=True)
        if verdict is Proof.DONE:
            return Done(found, proved=True)
        if verdict is Proof.REFUSED:
            raise ConditionFailedError(str(error), operation=write.operation, item=found) from error
        raise self._unknown(write, key) from error

    def _unknown(self, write: Write, key: KeyLike) -> OutcomeUnknownError:
        """What the caller is told of a write of which nothing is proved."""
        return OutcomeUnknownError(
            f"{self._name(key)}: no answer came; the write may have been applied, or may still be. {_advice(write)}",
            operation=write.operation,
            key=self._key_named(key),
            revision=write.revision or None,
        )

    def _told_of_one(self, error: ThrottledError | UnprocessedError, item_key: ItemKey, key: KeyLike) -> EngineError:
        """What the caller is told of an item that could not be read or written in time."""
        if isinstance(error, ThrottledError):
            self._throttled(error, [item_key])
            return error
        told, cause = self._told(error, {item_key: key}), error.__cause__
        # One item was asked for: what kept it from being read says more than that it was not.
        return cause if isinstance(cause, EngineError) else told

    def _told(self, error: UnprocessedError, names: Mapping[ItemKey, KeyLike]) -> UnprocessedError:
        """What the caller is told of keys that were left over, named as the caller names them."""
        left = [ItemKey(str(key[PK]), str(key[SK])) for key in error.keys]
        cause = error.__cause__
        if cause is None:
            cause = ThrottledError(str(error), operation=error.operation, aws_code=error.aws_code)
        if isinstance(cause, ThrottledError):
            self._throttled(cause, left)
        keys = [self._key_named(names[key]) for key in left]
        return UnprocessedError(str(error), operation=error.operation, keys=keys)

    def _key_named(self, key: KeyLike) -> dict[str, str | int]:
        """The fields of a key, as errors name them."""
        fields = self._key_fields(key)
        return {name: _plain(name, fields[name]) for name in self._entity.key_fields}

    def _throttled(self, error: ThrottledError, keys: Iterable[ItemKey]) -> None:
        for partition in dict.fromkeys(key.partition for key in keys):
            self._store.throttled(self._entity, partition, error)

    def _key_fields(self, key: KeyLike) -> Mapping[str, Any]:
        return key if isinstance(key, Mapping) else key.__dict__

    def _name(self, key: KeyLike) -> str:
        fields = self._key_fields(key)
        return f"{self._entity.name} " + ", ".join(f"{n}={fields[n]!r}" for n in self._entity.key_fields if n in fields)


def _advice(write: Write) -> str:
    """What the caller of a write can do of which nothing is proved."""
    if not write.revision:
        return "Read the item: if it is still there, delete it again; if it is gone, you or somebody else deleted it."
    applied = f"Read the item consistently: if its revision is {write.revision}, it was applied."
    if write.exact:
        return f"{applied} If its revision is still the one that you named, send the same again."
    return f"{applied} If not, decide by what you read: sending the same again may undo what others wrote since."


def _plain(name: str, value: Any) -> str | int:
    return value if type(value) in (str, int) else key_text(name, value)
