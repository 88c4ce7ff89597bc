"""Writes single items of one entity: decides by the write guarantee what is read first, and what is sent."""

from collections.abc import Collection, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Generic

from msgspec.structs import replace

from dynashard.entity import WriteGuarantee, guarantee_of, revision_in
from dynashard.errors import (
    AlreadyExistsError,
    ConditionFailedError,
    EngineError,
    InvalidValueError,
    RevisionMismatchError,
    UndecodableItemError,
    WriteContendedError,
)
from dynashard.repository.conditions import exists_already, is_live
from dynashard.repository.item_access import ItemAccess
from dynashard.repository.key_names import name_of
from dynashard.repository.projection import Reading
from dynashard.repository.replacement import objects_read, revision_read
from dynashard.repository.store import Companion, E, ExactlyOnce, KeyLike, Store, Written, write_operation
from dynashard.repository.updates import FieldUpdates, applied, check_updates
from dynashard.repository.write import Done, Kind, Write
from dynashard.repository.write_builder import WriteBuilder
from dynashard.schema import PK, SK
from dynashard.transport.classification import INVALID_REQUEST

_RACES: Final = 8
"""How often a read-then-write starts again because another writer came between."""


class ItemWrites(Generic[E]):
    """Writes single items. Safe to share between threads. Each method does what that of `Repository` says.

    Attributes:
        items: reads stored items and sends their writes.
        builder: makes the writes.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        self.items = ItemAccess(store, model)
        self.entity = self.items.entity
        self.builder = WriteBuilder(store, self.entity)
        self._store = store

    @cached_property
    def _exactly_once(self) -> ExactlyOnce:
        return self._store.exactly_once(self._store)

    @write_operation
    def create(self, item: E, /, *, handling: str | None = None) -> E:
        """Store an item under a key that has no live item; see `Repository.create`."""
        level = self._level(handling)
        if level is WriteGuarantee.EXACTLY_ONCE or self.entity.unique:
            return self._exactly_once.create(item)
        write = self.builder.put(Kind.CREATE, item, created=None)
        if level is WriteGuarantee.GUARDED and self.items.read(item, Reading(consistent=True)) is not None:
            # After a lost answer a stored item proves nothing; before the first request it does.
            raise exists_already(name_of(self.entity, item))
        self.items.do(write, item)
        return self.builder.item_of(write)

    @write_operation
    def create_with(self, item: E, companion: Companion) -> E:
        """Store an item in one transaction with an action on another table; see `Repository.create_with`."""
        return self._exactly_once.create(item, companion)

    @write_operation
    def put(
        self, item: E, /, *, if_match: str | None = None, handling: str | None = None, over: E | None = None
    ) -> Written[E]:
        """Store an item, whether or not its key had one; see `Repository.put`."""
        level = self._level(handling)
        if self.entity.unique:
            level = WriteGuarantee.EXACTLY_ONCE
        if over is not None:
            revision_read(over, if_match)
            if level is WriteGuarantee.EXACTLY_ONCE:
                return Written(self._exactly_once.put(item, if_match=None, over=over), created=False)
            changing = self.builder.put_over(item, over)
            self.items.do(changing, item)
            return Written(self.builder.item_of(changing), created=False)
        if level is not WriteGuarantee.PLAIN or (self.entity.created_fields and item.revision is None):
            return self._put_over_what_is_read(item, if_match, once=level is WriteGuarantee.EXACTLY_ONCE)
        write = self.builder.put_unread(item, if_match)
        try:
            done = self.items.write(write, item)
        except ConditionFailedError as failed:
            if write.refused_unread(failed.item):
                return self._put_over_what_is_read(item, if_match)
            raise self.items.refusal_of(failed, item, write) from None
        # Of a free key the local engine returns the key itself.
        there = is_live(done.attributes, write.now) and {*(done.attributes or ())} > {PK, SK}
        return Written(self.builder.item_of(write), write.kind is Kind.UPSERT and not done.proved and not there)

    @write_operation
    def update(
        self,
        key: KeyLike,
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own word for it
        remove: Collection[str] = (),
        add: Mapping[str, Any] | None = None,
        if_match: str | None = None,
        handling: str | None = None,
    ) -> E:
        """Update some fields of a live item; see `Repository.update`."""
        entity = self.entity
        updates = check_updates(entity, set or {}, remove=remove, add=add or {})
        item_key = entity.key_of(key)
        level = self._level(handling)
        if level is WriteGuarantee.EXACTLY_ONCE or not entity.reserving.isdisjoint(updates.fields):
            # A read afterwards could fail, or find what others have written since: the answer would not be true.
            return self._update_once(key, set=set, remove=remove, add=add, if_match=if_match)
        known = self.builder.known(key, updates)
        if level is WriteGuarantee.PLAIN and not self.builder.reads_first(updates, known):
            write = self.builder.update(item_key, updates, known, if_match)
            try:
                return self._apply(write, key, updates)
            except ConditionFailedError as failed:
                # Its type, version or objects may not be those that the write would change.
                if not write.refused_unread(failed.item):
                    raise self.items.refusal_of(failed, key, write) from None
        for _ in range(_RACES):
            stored = self.items.read_live(key, if_match)
            current = entity.decode(stored)
            after, written = applied(entity, current, updates)
            if not entity.reserving.isdisjoint(written.fields):
                # A validator changes a unique value.
                return self._update_once(key, set=set, remove=remove, add=add, if_match=if_match)
            before = objects_read(entity, stored, current)
            try:
                write = self.builder.update(item_key, written, after, current.revision, before=before)
                return self._apply(write, key, updates)
            except ConditionFailedError as failed:
                refusal = self.items.refusal_of(failed, key, write)
                if if_match is not None or not isinstance(refusal, RevisionMismatchError):
                    raise refusal from None
        raise RevisionMismatchError(f"{name_of(self.entity, key)} changes too often to be updated; try again later")

    def _update_once(self, key: KeyLike, **updates: Any) -> E:
        return self._exactly_once.update(self.entity.model, key, **updates)

    @write_operation
    def delete(self, key: KeyLike, /, *, if_match: str | None = None, handling: str | None = None) -> None:
        """Delete a live item; see `Repository.delete`."""
        level = self._level(handling)
        if level is WriteGuarantee.EXACTLY_ONCE or self.entity.unique:
            self._exactly_once.delete(self.entity.model, key, if_match=if_match)
        else:
            self.remove(key, if_match, guarded=level is WriteGuarantee.GUARDED)

    def remove(
        self,
        key: KeyLike,
        if_match: str | None,
        *,
        guarded: bool,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> Done:
        """Delete a live item by a request of its own, which has these options; return its result."""
        if guarded and if_match is None:
            return self._delete_what_is_read(key, options)
        if guarded:
            self.items.require(if_match, self.items.read(key, Reading(consistent=True)), key)
        now = self._store.now()
        write = Write(Kind.ALTER, self.entity.key_of(key), "DeleteItem", now, options=options, if_match=if_match)
        return self.items.do(write, key)

    def _level(self, handling: str | None) -> WriteGuarantee:
        return guarantee_of(handling, self.entity.guarantee)

    def _delete_what_is_read(self, key: KeyLike, options: Mapping[str, Any]) -> Done:
        """Delete the live item, whatever others write meanwhile."""
        item_key = self.entity.key_of(key)
        for _ in range(_RACES):
            revision, now = revision_in(self.items.read_live(key)), self._store.now()
            write = Write(Kind.ALTER, item_key, "DeleteItem", now, options=options, if_match=revision, guarded=True)
            try:
                return self.items.write(write, key)
            except ConditionFailedError as failed:
                if not is_live(failed.item, write.now):
                    raise self.items.refusal_of(failed, key, replace(write, if_match=None)) from None
        raise WriteContendedError(f"{name_of(self.entity, key)} changes too often to be deleted; try again later")

    def _put_over_what_is_read(self, item: E, if_match: str | None, *, once: bool = False) -> Written[E]:
        for _ in range(_RACES):
            current = self.items.read(item, Reading(consistent=True))
            self.items.require(if_match, current, item)
            try:
                if once:
                    if current is None:
                        return Written(self._exactly_once.create(item), created=True)
                    over = self.builder.read(current)
                    at = revision_in(current) if over is None else None
                    stored = self._exactly_once.put(item, if_match=at, over=over)
                    return Written(stored, created=False)
                write = self.builder.put_over_stored(item, current)
                self.items.write(write, item)
                return Written(self.builder.item_of(write), created=current is None)
            except (ConditionFailedError, AlreadyExistsError, RevisionMismatchError):
                continue
        raise RevisionMismatchError(f"{name_of(self.entity, item)} changes too often to be replaced; try again later")

    def _apply(self, write: Write, key: KeyLike, updates: FieldUpdates) -> E:
        """Do the write of an update; return the item as updated."""
        try:
            done = self.items.write(write, key)
        except InvalidValueError as refused:
            raise self.items.sum_refused(refused, key, updates) from None
        except EngineError as refused:
            if updates.add and refused.aws_code == INVALID_REQUEST:
                self.items.require_decodable(key)
            raise
        try:
            return self.entity.decode(done.attributes or {})
        except UndecodableItemError as error:
            # It is an item of the entity, of which the update has changed only what it names.
            raise UndecodableItemError(f"{error}. The update is stored; the rest of the item is as it was") from error
