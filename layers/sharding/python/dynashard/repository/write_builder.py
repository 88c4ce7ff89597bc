"""Makes the writes of one entity's items: what is stored for an item, stamped and with a new revision."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Generic

from msgspec.structs import replace

from dynashard.codec import decode_value, fits, require_fits
from dynashard.entity import EntityDefinition, ItemKey, revision_in
from dynashard.entity.assignment import unreadable
from dynashard.entity.uniqueness import reserved_for
from dynashard.entity.versions import Upgraded, upgraded_from
from dynashard.errors import InvalidKeyError, UndecodableItemError
from dynashard.repository.evidence import lineage
from dynashard.repository.key_names import key_fields, name_of
from dynashard.repository.replacement import only_declared, replacing, revision_read, rewriting
from dynashard.repository.store import E, KeyLike, Store
from dynashard.repository.updates import FieldUpdates, start_of, touched_indexes, update_expression
from dynashard.repository.write import Kind, Owned, Write
from dynashard.routing import IndexCounts, Router
from dynashard.schema import PREV, REV, TYPE, index_pk, index_sk
from dynashard.topology import DeclaredTopology
from dynashard.transport.interface import Wire


class WriteBuilder(Generic[E]):
    """Makes the writes of one entity's items. Sends nothing, but may read shard counts of indexes."""

    def __init__(self, store: Store, entity: EntityDefinition[E]) -> None:
        self._store = store
        self._entity = entity
        self._owned = Owned(entity.name, entity.untyped)

    def check(self, item: E, *, timely: bool = True) -> None:
        """See `Repository.check`."""
        # Declared counts suffice, and need no topology table.
        counts = IndexCounts(Router(DeclaredTopology()), self._entity)
        key = self._entity.key_of(item)
        clock = self._store.router.key_clock
        (clock.require_timely if timely else clock.require_format)(self._entity, key)
        made = self.as_read(self.wire_of(item, key, created=None, counts=counts), key, item)
        reserved_for(self._entity, made.__dict__)

    def wire_of(
        self,
        item: E,
        key: ItemKey,
        *,
        created: datetime | None,
        replaces: str | None = None,
        stamp: datetime | None = None,
        revision: str | None = None,
        counts: IndexCounts | None = None,
    ) -> Wire:
        """Return the item as it will be stored, without its stored key: stamped, and with a new revision.

        What all items of a batch share may be given: the time of the write, their revisions and the counts.
        """
        entity, now, revision = self._entity, stamp or self._store.stamp(), revision or self._store.new_revision()
        counts = IndexCounts(self._store.router, entity) if counts is None else counts
        fields = entity.values_of(item)
        compiled = entity.writer(fields, key, now, created or now, revision, counts)
        wire: Wire = compiled or {TYPE: {"S": entity.name}, REV: {"S": revision}, **entity.versions.stored}
        if compiled is None:
            stamps = dict.fromkeys(entity.updated_fields, now) | dict.fromkeys(entity.created_fields, created or now)
            values = {**fields, **stamps}
            for index in entity.indexes.values():
                wire.update(counts.router.index_attributes(entity, index, key, values))
            wire.update(entity.encode(values))
        past = lineage(replaces)
        if compiled is not None and not past:
            return wire
        # The key of another home may be a little longer: the room that is left for markers holds that too.
        stored = {**counts.router.stored_key(entity, key), **wire}
        require_fits(stored)
        if past and not fits({**stored, **past}):
            # One predecessor fits into the room that is left for markers.
            past = {PREV: {"S": replaces or "-"}}
        wire.update(past)
        return wire

    def put(
        self, kind: Kind, item: E, *, created: datetime | None, if_match: str | None = None, over: E | None = None
    ) -> Write:
        """Return the put of an item, with the creation stamp `created` or, if that is None, the present time."""
        key = self._entity.key_of(item)
        wire = self.wire_of(item, key, created=created, replaces=if_match)
        return self.storing(kind, key, wire, if_match, item, returns=kind is Kind.UPSERT, over=over)

    def storing(
        self,
        kind: Kind,
        key: ItemKey,
        wire: Wire,
        if_match: str | None,
        item: E,
        *,
        returns: bool,
        over: E | None = None,
    ) -> Write:
        """Return the write that stores a whole item; DynamoDB may return what it replaces, or update what was read."""
        options = {"ReturnValues": "ALL_OLD"} if returns else {}
        version = self._entity.versions.number
        now, revision = self._store.now(), wire[REV]["S"]
        made = self.as_read(wire, key, item)
        write = Write(kind, key, "PutItem", now, wire, options, if_match, revision, version=version, made=made)
        return replacing(self._entity, write, over)

    def item_of(self, write: Write) -> E:
        """Return the item that a put has stored."""
        item: E = write.made
        return item

    def as_read(self, wire: Wire, key: ItemKey, item: E) -> E:
        """Return the item that readers will get once this is stored under a key.

        Pydantic does not validate defaults or what `model_copy` changes, so an item may have values of other types, or
        such as validators change. Keys of indexes in `wire` become those of what readers get.

        Raises:
            InvalidValueError: readers will get none.
            InvalidKeyError: its fields will be read as those of another key, so no reader would accept it.
        """
        try:
            made = self._entity.decode(wire)
        except UndecodableItemError as error:
            raise unreadable(error) from error
        placing = self._entity.placing
        if placing(made.__dict__) != placing(item.__dict__):
            self._place_as_read(wire, key, made)
        return made

    def require_readable(self, wire: Wire, key: ItemKey, item: E) -> None:
        """Do what `as_read` does, without making the item that readers will get if its fields show that they get it."""
        if not self._entity.reads_back(item.__dict__, wire):
            self.as_read(wire, key, item)

    def _place_as_read(self, wire: Wire, key: ItemKey, made: E) -> None:
        entity = self._entity
        if entity.key_of(made) != key:
            read = {name: entity.encode_field(name, made.__dict__[name]) for name in entity.key_fields}
            name = next(each for each in read if read[each] != wire[each])
            after, before = decode_value(read[name]), decode_value(wire[name])
            raise InvalidKeyError(
                f"{name}: its validator makes {after!r} of {before!r}, so the item would not be found under its key; "
                "give the value as the validator makes it. For a default, write Field(validate_default=True)",
                field=name,
            )
        for index in entity.indexes.values():
            entry = self._store.router.index_attributes(entity, index, key, made.__dict__)
            for attribute in (index_pk(index.slot), index_sk(index.slot)):
                wire.pop(attribute, None)
            wire.update(entry)

    def put_unread(self, item: E, if_match: str | None) -> Write:
        """Return the put of an item over one that was not read."""
        kind = Kind.UPSERT if if_match is None else Kind.ALTER
        write = self.put(kind, item, created=self.created_of(item), if_match=if_match)
        if not self._entity.nested:
            return write
        return replace(write, objects=only_declared(self._entity, item.__dict__, write.item or {}))

    def put_over(self, item: E, over: E) -> Write:
        """Return the put of an item over one that its caller has read: it writes only what differs."""
        revision = revision_read(over, None)
        if self._entity.key_of(over) != self._entity.key_of(item):
            names = name_of(self._entity, item), name_of(self._entity, over)
            raise InvalidKeyError(f"{names[0]} cannot replace {names[1]}: they have different keys")
        return self.put(Kind.ALTER, item, created=self.created_of(over), if_match=revision, over=over)

    def put_over_stored(self, item: E, current: Wire | None) -> Write:
        """Return the put of an item over the stored one, None without one; it keeps the creation stamp."""
        if current is None:
            return self.put(Kind.CREATE, item, created=None)
        created, revision = self.stored_stamp(current), revision_in(current)
        return self.put(Kind.ALTER, item, created=created, if_match=revision, over=self.read(current))

    def read(self, current: Wire) -> E | None:
        """Return the stored item that was read, if a put over it depends on what it holds.

        That is so if it has objects whose members the put may have to keep, or unique values, or if it is of an earlier
        version.

        Raises `NewerItemError` for an item of a later version.
        """
        entity = self._entity
        outdated = entity.versions.differs(current)
        if outdated:
            entity.versions.require_known(entity, current)
        if entity.nested or entity.unique or outdated:
            with suppress(UndecodableItemError):
                return entity.decode(current)
        return None

    def stored_stamp(self, wire: Wire) -> datetime | None:
        """Return the creation stamp of a stored item; None if it has none, or one that is not a time."""
        stamps: dict[str, Any] = {}
        with suppress(UndecodableItemError):
            stamps = self._entity.decode_fields(wire, [name for name in self._entity.created_fields if name in wire])
        return next(iter(stamps.values()), None)

    def created_of(self, item: E) -> datetime | None:
        """Return the creation stamp of an item, if it was read from the store."""
        if item.revision is not None:
            for name in self._entity.created_fields:
                created: datetime = item.__dict__[name]
                return created
        return None

    def update(
        self,
        item_key: ItemKey,
        updates: FieldUpdates,
        after: Mapping[str, Any],
        if_match: str | None,
        attributes: Mapping[str, Wire | None] | None = None,
        *,
        stamp: datetime | None = None,
        first: Wire | None = None,
        before: Wire | None = None,
    ) -> Write:
        """Return the write of an update. It sets `attributes` too (None removes one), and those of `first` if absent.

        `before` are the objects of the item that was read at the revision `if_match`: see `objects_read`. None if no
        item was read.
        """
        entity, store = self._entity, self._store
        if (upgraded := upgraded_from(if_match)) is not None:
            values = {**after, **dict.fromkeys(entity.updated_fields, stamp or store.stamp())}
            return self.rewrite(item_key, values, if_match, upgraded, attributes or {})
        revision = store.new_revision()
        system = {name: value for name, value in (attributes or {}).items() if value is not None}
        gone = [name for name in attributes or () if name not in system]
        system |= {REV: {"S": revision}, **lineage(if_match)}
        stamp = stamp or store.stamp()
        after = {**after, **dict.fromkeys(entity.updated_fields, stamp)}
        for index in touched_indexes(entity, updates.fields):
            entry = store.router.index_attributes(entity, index, item_key, after)
            system.update(entry)
            gone += () if entry else (index_pk(index.slot), index_sk(index.slot))
        update = update_expression(
            entity, updates, system=system, first=first or {}, gone=gone, now=stamp, before=before or {}
        )
        options = {"ReturnValues": "ALL_NEW", **update}
        write = Write(
            Kind.ALTER,
            item_key,
            "UpdateItem",
            store.now(),
            options=options,
            if_match=if_match,
            revision=revision,
            version=entity.versions.number,
            partial=True,
            unread=None if before is not None else self._owned,
        )
        if before is not None or not entity.nested:
            return write
        return replace(write, objects=only_declared(entity, updates.set, entity.encode(updates.set)))

    def rewrite(
        self,
        item_key: ItemKey,
        values: Mapping[str, Any],
        if_match: str | None,
        upgraded: Upgraded,
        attributes: Mapping[str, Wire | None],
    ) -> Write:
        """Return the write of an item of an earlier version in the present form: all `values` of its fields.

        `attributes` are those of attachments that change; None removes one.
        """
        entity, store = self._entity, self._store
        kept = {name: upgraded.wire[name] for name in entity.attachments if name in upgraded.wire} | dict(attributes)
        wire: Wire = {TYPE: {"S": entity.name}, REV: {"S": store.new_revision()}, **entity.versions.stored}
        for index in entity.indexes.values():
            wire |= store.router.index_attributes(entity, index, item_key, values)
        wire |= entity.encode({name: value for name, value in values.items() if name not in entity.attachments})
        wire |= {name: value for name, value in kept.items() if value is not None}
        require_fits({**store.router.stored_key(entity, item_key), **wire})
        wire |= lineage(if_match)
        options = {"ReturnValues": "ALL_NEW", **rewriting(entity, wire, upgraded)}
        return Write(
            Kind.ALTER,
            item_key,
            "UpdateItem",
            store.now(),
            options=options,
            if_match=if_match,
            revision=wire[REV]["S"],
            version=entity.versions.number,
        )

    def known(self, key: KeyLike, updates: FieldUpdates) -> dict[str, Any]:
        """Return the fields of an item that an update itself names."""
        fields = key_fields(key)
        return {name: fields[name] for name in self._entity.key_fields} | dict(updates.set)

    def reads_first(self, updates: FieldUpdates, known: Mapping[str, Any]) -> bool:
        """Whether an update depends on the stored item: to check the whole or a sum, or for the key of an index."""
        entity = self._entity
        assignment = entity.assignment
        fields = updates.fields
        if assignment.checks_whole(fields) or any(
            assignment.bounded(name) or start_of(entity, name) is None for name in updates.add
        ):
            return True
        touched = touched_indexes(entity, fields)
        given = known.keys() | entity.updated_fields
        return not all(index.fields <= given and not index.fields & updates.add.keys() for index in touched)
