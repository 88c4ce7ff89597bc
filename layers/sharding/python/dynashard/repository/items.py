"""What single items and batches have in common: from an entity to what is stored."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from dynashard.codec import require_fits
from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.repository.store import Store
from dynashard.schema import REV, TYPE
from dynashard.transport.interface import Wire

E = TypeVar("E", bound=Entity)

KeyLike = Mapping[str, Any] | Entity
"""An item, or the fields of its key: `{"tenant_id": "abc", "id": "123"}`."""


class Items(Generic[E]):
    """The items of one entity in a store."""

    def __init__(self, store: Store, model: type[E]) -> None:
        self._store = store
        self._entity: EntityDefinition[E] = definition(model)

    @property
    def entity(self) -> EntityDefinition[E]:
        """The compiled declaration."""
        return self._entity

    def check(self, item: E) -> None:
        """Raise what storing this item would raise before anything is sent. Costs nothing.

        Raises:
            InvalidKeyError, InvalidValueError, ItemTooLargeError: with the field at fault.
        """
        self._prepare(item, created=None)

    def _prepare(self, item: E, *, created: datetime | None) -> Wire:
        """The item as it will be stored, stamped and with a new revision."""
        entity, store = self._entity, self._store
        now = datetime.fromtimestamp(store.clock(), UTC)
        stamps = dict.fromkeys(entity.updated_fields, now)
        stamps |= dict.fromkeys(entity.created_fields, created or now)
        values = {**item.__dict__, **stamps}
        key = entity.key_of(item)
        wire = {**store.router.stored_key(entity, key), TYPE: {"S": entity.name}, REV: {"S": store.new_revision()}}
        for index in entity.indexes.values():
            wire.update(store.router.index_attributes(entity, index, key, values))
        wire.update(entity.encode(values))
        require_fits(wire)
        return wire

    def _stored_stamp(self, wire: Wire) -> datetime | None:
        """The creation stamp of a stored item; adopted ones may have none."""
        stamps = self._entity.decode_fields(wire, [name for name in self._entity.created_fields if name in wire])
        return next(iter(stamps.values()), None)

    def _created(self, item: E) -> datetime | None:
        """The creation stamp of an item that was read from the store."""
        if item.revision is None:
            return None
        return next((getattr(item, name) for name in self._entity.created_fields), None)

    def _key_fields(self, key: KeyLike) -> Mapping[str, Any]:
        return key if isinstance(key, Mapping) else key.__dict__

    def _name(self, key: KeyLike) -> str:
        fields = self._key_fields(key)
        return f"{self._entity.name} " + ", ".join(f"{n}={fields[n]!r}" for n in self._entity.key_fields if n in fields)
