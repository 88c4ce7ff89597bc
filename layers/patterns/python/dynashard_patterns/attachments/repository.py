"""Items with attachments: the repository of their entities.

A version is stored in pieces that no item points to; one conditional write of the item makes it current; then the
version before it is removed. Readers follow the item's pointer. If the pieces are gone, another writer has replaced the
version, and they read again. So no reader sees a part of a version, or parts of two.

The write of the item demands that the item is as it was read, so a version becomes current at most once: a request that
is sent again, or arrives late, cannot bring back a version whose pieces are removed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, Generic

from dynashard.codec import require_fits
from dynashard.entity import EntityDefinition, ItemKey, WriteGuarantee, guarantee_of, revision_in
from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    InvalidQueryError,
    InvalidValueError,
    RevisionMismatchError,
    UndecodableItemError,
)
from dynashard.repository import Companion, KeyLike, Repository, Store, Written
from dynashard.repository.batches import Batches
from dynashard.repository.conditions import exists_already
from dynashard.repository.key_names import name_of, not_found
from dynashard.repository.projection import Part, Reading
from dynashard.repository.replacement import objects_read, revision_read
from dynashard.repository.retry_policy import unsettled
from dynashard.repository.single_batches import SingleBatchWriter
from dynashard.repository.store import E, read_operation, write_operation
from dynashard.repository.updates import FieldUpdates, applied, check_updates
from dynashard.repository.write import Done, Kind, Write
from dynashard.transport.interface import Wire
from dynashard_patterns.attachments.pointer import Pointer, inline, pointers
from dynashard_patterns.attachments.versions import Fields, Fresh


class AttachmentRepository(Generic[E]):
    """The items of one entity that has attachments. Safe to share between threads.

    A writer that omits an attachment leaves it unchanged, and None removes it. Returned items have their attachments
    unset, unless the caller included them. Everything else is as in `Repository`, except the costs: a write that
    replaces an item reads it first, for 1 read unit and 1 round trip. A version costs 4 round trips, and 1 write unit
    for each compressed KB and 3 for its manifest: once when it is stored, and again when it is removed.

    What concerns the item alone is left to a `Repository` of the same entity, and its parts.
    """

    def __init__(self, store: Store, model: type[E]) -> None:
        self._plain = Repository(store, model)
        self._items = self._plain.writes.items
        self._builder = self._plain.writes.builder
        self._entity = self._plain.entity
        self._store = store
        self.batches = Batches(self._items, SingleBatchWriter(store, self))

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        return self._entity

    @cached_property
    def _fields(self) -> Fields:
        return Fields(self._store, self._entity)

    def check(self, item: E, *, timely: bool = True) -> None:
        """Raise what storing this item would raise before any request; see `Repository.check`."""
        named = self._named(item)
        self._plain.check(_bare(item, named), timely=timely)
        self._fields.pack(named)
        for name in named:
            self._fields.place(name, self._entity.key_of(item))

    @write_operation
    def create(self, item: E, /, *, handling: str | None = None) -> E:
        """Store an item under a key that has no live item; see `Repository.create`."""
        guarded, key = self._no_transactions(handling) is WriteGuarantee.GUARDED, self._entity.key_of(item)
        if guarded and self._items.read(item, Reading(consistent=True)) is not None:
            raise exists_already(name_of(self._entity, item))
        with self._versions(key, self._named(item)) as fresh:
            write = self._item_write(Kind.CREATE, item, fresh.attributes(None), created=None)
            fresh.store()
            done = self._items.do(write, item)
        # An expired item may still have been stored under the key.
        expired = None if done.proved else done.attributes
        self._fields.take_away(key, pointers(expired, self._entity.attachments))
        return self._builder.item_of(write)

    @write_operation
    def put(
        self, item: E, /, *, if_match: str | None = None, handling: str | None = None, over: E | None = None
    ) -> Written[E]:
        """Store an item, whether or not its key had one; see `Repository.put`. Always guarded."""
        self._no_transactions(handling)
        entity = self._entity
        if over is not None:
            if_match = revision_read(over, if_match)

        def write_of(current: Wire | None, attributes: Mapping[str, Wire | None]) -> Write:
            if current is None:
                return self._item_write(Kind.CREATE, item, attributes, created=None)
            created = self._builder.stored_stamp(current) if entity.created_fields else None
            at, read = revision_in(current), self._builder.read(current) if over is None else over
            return self._item_write(Kind.ALTER, item, attributes, created=created, if_match=at, over=read)

        with self._versions(entity.key_of(item), self._named(item)) as fresh:
            write, current, _ = self._swap(item, fresh, if_match, write_of)
        return Written(self._builder.item_of(write), current is None)

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
        """Update some fields of a live item; see `Repository.update`.

        Cost: as there if no attachment is named.
        """
        self._no_transactions(handling)
        attachments = self._entity.attachments.keys()
        if not attachments & {*(set or {}), *remove, *(add or {})}:
            return self._plain.update(key, set=set, remove=remove, add=add, if_match=if_match, handling=handling)
        if clash := attachments & (add or {}).keys():
            raise InvalidValueError(f"{min(clash)} is an attachment: nothing can be added to it", field=min(clash))
        updates = check_updates(self._entity, set or {}, remove=remove, add=add or {})
        rest = FieldUpdates({n: v for n, v in updates.set.items() if n not in attachments}, updates.add)
        item_key = self._entity.key_of(key)

        def write_of(current: Wire | None, attributes: Mapping[str, Wire | None]) -> Write:
            if current is None:
                raise not_found(self._entity, key)
            read = self._entity.decode(current)
            after, written = applied(self._entity, read, rest)
            before = objects_read(self._entity, current, read)
            return self._builder.update(item_key, written, after, read.revision, attributes, before=before)

        with self._versions(item_key, {n: v for n, v in updates.set.items() if n in attachments}) as fresh:
            _, _, done = self._swap(key, fresh, if_match, write_of)
        return self._entity.decode(done.attributes or {})

    @write_operation
    def delete(self, key: KeyLike, /, *, if_match: str | None = None, handling: str | None = None) -> None:
        """Delete a live item, and then all of its attachments; see `Repository.delete`.

        If that is interrupted, readers no longer see the item, and a sweep removes the rest.
        """
        guarded = self._no_transactions(handling) is WriteGuarantee.GUARDED
        done = self._plain.writes.remove(key, if_match, guarded=guarded, options={"ReturnValues": "ALL_OLD"})
        self._fields.take_away(self._entity.key_of(key), pointers(done.attributes, self._entity.attachments))

    def exists(self, key: KeyLike, /, *, consistent: bool = False) -> bool:
        """Whether a live item has this key; see `Repository.exists`."""
        return self._plain.exists(key, consistent=consistent)

    def part(self, key: KeyLike, /, *, fields: Sequence[str], consistent: bool = False) -> Part:
        """Return some fields of the live item with this key; see `Repository.part`."""
        return self._plain.part(key, fields=fields, consistent=consistent)

    @property
    def can_create_with(self) -> bool:
        """Whether `create_with` can be used: never, because a version takes several requests."""
        return self._plain.can_create_with

    def create_with(self, item: E, companion: Companion) -> E:
        """Raise what `Repository.create_with` raises for an entity with attachments."""
        return self._plain.create_with(item, companion)

    def confirm_created(self, key: KeyLike, revision: str, shards: int) -> bool:
        """Whether readers find what a create stored; see `Repository.confirm_created`."""
        return self._plain.confirm_created(key, revision, shards)

    def _no_transactions(self, handling: str | None) -> WriteGuarantee:
        """The level of a write; raises for one that an entity with attachments cannot have."""
        level = guarantee_of(handling, self._entity.guarantee)
        if level is WriteGuarantee.EXACTLY_ONCE:
            raise InvalidQueryError(
                f"{self._entity.name} has attachments, and their writes are not one transaction; use guarded",
                field="handling",
            )
        return level

    @read_operation
    def find(self, key: KeyLike, /, *, consistent: bool = False, include: Sequence[str] = ()) -> E | None:
        """Return the live item with this key, or None, with the attachments to include; see `Repository.find`."""
        if not include:
            return self._plain.find(key, consistent=consistent)
        names = tuple(dict.fromkeys(include))
        self._fields.require(names)
        item_key, pauses = self._entity.key_of(key), self._store.retry_policy.pauses()
        seen: dict[str, Pointer] | None = None
        while True:
            stored = self._items.read(key, Reading(consistent))
            if stored is None:
                return None
            current = pointers(stored, names)
            values = self._values(item_key, current, consistent=consistent)
            if values is not None:
                values |= self._fields.unpacked(inline(stored, names))
                return _filled(self._entity.decode(stored), {**dict.fromkeys(names), **values})
            # Another writer has replaced the version. A consistent read finds the present one.
            if consistent and seen == current:
                raise UndecodableItemError(
                    f"{name_of(self._entity, key)}: pieces of {', '.join(names)} are gone. Write it anew"
                )
            if next(pauses, None) is None:
                raise unsettled(self._entity, "GetItem")
            seen, consistent = current if consistent else None, True

    def _values(self, key: ItemKey, current: Mapping[str, Pointer], *, consistent: bool) -> dict[str, Any] | None:
        """The values of pointers; None if pieces of one are gone."""
        values: dict[str, Any] = {}
        for name, pointer in current.items():
            found = self._fields.read(name, key, pointer, consistent=consistent)
            if found is None:
                return None
            [values[name]] = found
        return values

    def _named(self, item: E) -> dict[str, Any]:
        """The attachments that an item was made with."""
        named = item.model_fields_set
        return {name: getattr(item, name) for name in self._entity.attachments if name in named}

    @contextmanager
    def _versions(self, key: ItemKey, values: Mapping[str, Any]) -> Iterator[Fresh]:
        """New versions for a write of their item. They are removed if the write is certainly refused."""
        fresh = Fresh(self._store, self._fields, key, self._fields.pack(values))
        try:
            yield fresh
        except EngineError:
            # The item may point to them. A sweep removes them if it does not.
            raise
        except DynashardError:
            fresh.take_away()
            raise

    def _swap(
        self,
        key: KeyLike,
        fresh: Fresh,
        if_match: str | None,
        write_of: Callable[[Wire | None, Mapping[str, Wire | None]], Write],
    ) -> tuple[Write, Wire | None, Done]:
        """Replace the item that was read, with new versions, until no other writer interferes.

        Returns:
            The write, the item before it, and its result.
        """
        for _ in self._tries():
            current = self._items.read(key, Reading(consistent=True))
            self._items.require(if_match, current, key)
            fresh.renew()
            write = write_of(current, fresh.attributes(current))
            fresh.store()
            try:
                done = self._items.write(write, key)
            except ConditionFailedError:
                continue
            gone = current
            if write.kind is Kind.CREATE:
                gone = dict(done.attributes) if done.attributes and not done.proved else None
            replaced = [n for n in self._entity.attachments if n in fresh.pointers or write.kind is Kind.CREATE]
            self._fields.take_away(write.key, pointers(gone, replaced))
            return write, current, done
        raise RevisionMismatchError(f"{name_of(self._entity, key)} changes too often to be written; try again later")

    def _tries(self) -> Iterator[float]:
        yield 0.0
        yield from self._store.retry_policy.pauses()

    def _item_write(
        self,
        kind: Kind,
        item: E,
        attributes: Mapping[str, Wire | None],
        *,
        created: datetime | None,
        if_match: str | None = None,
        over: E | None = None,
    ) -> Write:
        key = self._entity.key_of(item)
        wire = self._builder.wire_of(_bare(item, self._entity.attachments), key, created=created, replaces=if_match)
        wire.update({name: attribute for name, attribute in attributes.items() if attribute is not None})
        require_fits({**self._store.router.stored_key(self._entity, key), **wire})
        return self._builder.storing(kind, key, wire, if_match, item, returns=kind is Kind.CREATE, over=over)


def _bare(item: E, names: Collection[str]) -> E:
    """The item without these fields."""
    return item.model_copy(update=dict.fromkeys(names))


def _filled(item: E, values: Mapping[str, Any]) -> E:
    """The item with these fields, whose values were checked when they were unpacked."""
    item.__dict__.update(values)
    item.__pydantic_fields_set__.update(values)
    return item
