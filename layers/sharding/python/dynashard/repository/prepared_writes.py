"""From what callers ask for to writes: what is stored of an item, and what an update changes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dynashard.codec import item_size, require_fits
from dynashard.entity import ItemKey, revision_in
from dynashard.repository.changes import Changes, touched_indexes, update_expression
from dynashard.repository.evidence import lineage
from dynashard.repository.items import E, Items
from dynashard.repository.writes import Kind, Write
from dynashard.routing import Router
from dynashard.schema import MAX_ITEM_BYTES, PREV, REV, TYPE, index_pk, index_sk
from dynashard.topology import DeclaredTopology
from dynashard.transport.interface import Wire

_NOTHING: Final[Mapping[str, Any]] = {}


class PreparedWrites(Items[E]):
    """Prepares the writes of one entity's items."""

    def check(self, item: E) -> None:
        """Raise what storing this item would raise before anything is sent. Costs nothing.

        Raises:
            InvalidKeyError, InvalidValueError, ItemTooLargeError: with the field at fault.
        """
        # Declared counts will do, and need no topology table to be there.
        self._prepare(item, self._entity.key_of(item), created=None, router=Router(DeclaredTopology()))

    def _prepare(
        self,
        item: E,
        key: ItemKey,
        *,
        created: datetime | None,
        replaces: str | None = None,
        router: Router | None = None,
    ) -> Wire:
        """The item as it will be stored, stamped and with a new revision, but for its stored key.

        `replaces` is the exact revision in whose place it is put, if there is one.
        """
        entity, store = self._entity, self._store
        router = router or store.router
        now = datetime.fromtimestamp(store.runtime.clock(), UTC)
        stamps = dict.fromkeys(entity.updated_fields, now)
        stamps |= dict.fromkeys(entity.created_fields, created or now)
        values = {**item.__dict__, **stamps}
        wire: Wire = {TYPE: {"S": entity.name}, REV: {"S": store.new_revision()}}
        for index in entity.indexes.values():
            wire.update(router.index_attributes(entity, index, key, values))
        wire.update(entity.encode(values))
        # Another home's key may be a little longer: the room that is left for marks holds that too.
        stored = router.stored_key(entity, key)
        size = require_fits({**stored, **wire})
        past = lineage(replaces)
        if past and size + item_size(past) > MAX_ITEM_BYTES:
            # One predecessor fits into the room that is left for marks.
            past = {PREV: {"S": replaces or "-"}}
        wire.update(past)
        return wire

    def _put_write(self, kind: Kind, item: E, *, created: datetime | None, if_match: str | None = None) -> Write:
        key = self._entity.key_of(item)
        wire = self._prepare(item, key, created=created, replaces=if_match)
        options = {"ReturnValues": "ALL_OLD"} if kind is Kind.UPSERT else {}
        return Write(kind, key, "PutItem", self._store.now(), wire, options, if_match, wire[REV]["S"])

    def _stored(self, write: Write) -> E:
        """The item that a put has stored."""
        return self._entity.decode(write.item or {})

    def _put_over(self, item: E, current: Wire | None) -> Write:
        """The put of an item over the one that was read, whose creation stamp it keeps; None if there was none."""
        if current is None:
            return self._put_write(Kind.CREATE, item, created=None)
        created = self._stored_stamp(current) if self._entity.created_fields else self._created(item)
        return self._put_write(Kind.CHANGE, item, created=created, if_match=revision_in(current))

    def _stored_stamp(self, wire: Wire) -> datetime | None:
        """The creation stamp of a stored item; adopted ones may have none."""
        stamps = self._entity.decode_fields(wire, [name for name in self._entity.created_fields if name in wire])
        return next(iter(stamps.values()), None)

    def _created(self, item: E) -> datetime | None:
        """The creation stamp of an item that was read from the store."""
        if item.revision is None:
            return None
        return next((getattr(item, name) for name in self._entity.created_fields), None)

    def _update_write(
        self,
        item_key: ItemKey,
        changes: Changes,
        after: Mapping[str, Any],
        if_match: str | None,
        beside: Mapping[str, Wire | None] = _NOTHING,
        *,
        stamp: datetime | None = None,
    ) -> Write:
        """The write of an update.

        Args:
            item_key: whose item.
            changes: what is set and added.
            if_match: the revision that is demanded.
            after: the fields that index keys need, as they are afterwards.
            beside: stored attributes that are set too, None for those that go.
            stamp: the time of the update; now if None.
        """
        entity, store = self._entity, self._store
        revision = store.new_revision()
        system = {name: value for name, value in beside.items() if value is not None}
        system |= {REV: {"S": revision}, **lineage(if_match)}
        gone = [name for name, value in beside.items() if value is None]
        stamp = stamp or datetime.fromtimestamp(store.runtime.clock(), UTC)
        after = {**after, **dict.fromkeys(entity.updated_fields, stamp)}
        for index in touched_indexes(entity, changes):
            attributes = store.router.index_attributes(entity, index, item_key, after)
            system.update(attributes)
            gone += () if attributes else (index_pk(index.slot), index_sk(index.slot))
        options = {"ReturnValues": "ALL_NEW", **update_expression(entity, changes, system=system, gone=gone, now=stamp)}
        return Write(
            Kind.CHANGE, item_key, "UpdateItem", store.now(), options=options, if_match=if_match, revision=revision
        )

    def _reads_first(self, changes: Changes, known: Mapping[str, Any]) -> bool:
        """Whether an update needs to know the item as it is."""
        entity = self._entity
        unread = entity.assignment.checks_whole or any(entity.assignment.bounded(name) for name in changes.add)
        return unread or not self._known_suffices(changes, known)

    def _known_suffices(self, changes: Changes, known: Mapping[str, Any]) -> bool:
        """Whether every index key that changes can be told from the fields at hand."""
        entity = self._entity
        given = known.keys() | entity.updated_fields
        touched = touched_indexes(entity, changes)
        return all(index.fields <= given and not index.fields & changes.add.keys() for index in touched)
