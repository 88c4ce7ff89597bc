"""New versions of an item's attachments: stored before the item points to them, and taken away if it never does."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.errors import EngineError, EngineUnavailableError, InvalidQueryError, OutcomeUnknownError
from dynashard.repository.store import Store
from dynashard.transport.interface import Wire
from dynashard_patterns.attachments.packing import Packed, Packer
from dynashard_patterns.attachments.pieces import Manifest, Pieces, Place
from dynashard_patterns.attachments.pointer import Pointer

COMMIT_SECONDS: Final = 15 * 60
"""How long after a version was begun an item may come to point to it."""
GRACE_SECONDS: Final = 24 * 60 * 60
"""How old a version must be before others than its writer may take it away, if no item points to it."""


class Fields:
    """The attachments of an entity: how they are packed and where they are stored."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity
        self.stored = Pieces(store)
        self._packers = {
            name: Packer(name, entity.model.model_fields[name], declared.max_bytes)
            for name, declared in entity.attachments.items()
        }

    def pack(self, values: Mapping[str, Any]) -> dict[str, Packed | None]:
        """Values ready to be stored; None for those that are None.

        Raises:
            InvalidValueError, ItemTooLargeError: with the field at fault.
        """
        return {name: None if value is None else self._packers[name].pack(value) for name, value in values.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The attachments."""
        return tuple(self._packers)

    def place(self, name: str, key: ItemKey) -> Place:
        """Where the versions of a field of an item are."""
        return Place.of(self._entity, name, key)

    def require(self, names: Iterable[str]) -> None:
        """Refuse names of other fields than attachments.

        Raises:
            InvalidQueryError: with the name.
        """
        for name in names:
            if name not in self._packers:
                raise InvalidQueryError(f"{self._entity.name} has no attachment {name}", field="include")

    def read(self, name: str, key: ItemKey, pointer: Pointer, *, consistent: bool) -> tuple[Any] | None:
        """Return the value of a pointer, in a tuple; None if pieces of it are gone.

        Raises:
            UndecodableItemError: they are damaged.

        Cost: as `Pieces.read`.
        """
        pieces = self.stored.read(self.place(name, key), pointer.version, pointer.pieces, consistent=consistent)
        return None if pieces is None else (self._packers[name].unpack(pointer, pieces),)

    def unpacked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values that items hold themselves, as the fields have them; raises `UndecodableItemError`."""
        return {name: self._packers[name].unpacked(value) for name, value in values.items()}

    def take_away(self, key: ItemKey, pointers: Mapping[str, Pointer]) -> None:
        """Remove versions that are not current any more, or never will be, as far as that is possible now.

        What cannot be removed is left to the sweep: the write that these were in the way of is done.
        """
        for name, pointer in pointers.items():
            with contextlib.suppress(EngineError):
                self.stored.remove(self.place(name, key), pointer.version, pointer.pieces)


class Fresh:
    """New versions of some fields of one item."""

    def __init__(self, store: Store, fields: Fields, key: ItemKey, packed: Mapping[str, Packed | None]) -> None:
        self._store = store
        self._fields = fields
        self._key = key
        self._packed = packed
        self._since: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._since = None
        new = self._store.new_revision
        self.pointers = {n: None if each is None else each.pointer(new()) for n, each in self._packed.items()}

    def renew(self) -> None:
        """Take other versions if those at hand were stored too long ago to become current."""
        if self._since is not None and self._store.now() - self._since > COMMIT_SECONDS:
            self.take_away()
            self._begin()

    def attributes(self, item: Mapping[str, Any] | None) -> dict[str, Wire | None]:
        """Return the pointers of an item once these versions are current; None for a pointer that is removed."""
        kept = {} if item is None else {name: item[name] for name in self._fields.names if name in item}
        return {**kept, **{name: None if each is None else each.stored() for name, each in self.pointers.items()}}

    def store(self) -> None:
        """Store the versions, unless that is done."""
        if self._since is not None:
            return
        self._since = self._store.now()
        try:
            for name, packed in self._packed.items():
                pointer = self.pointers[name]
                if packed is not None and pointer is not None:
                    place = self._fields.place(name, self._key)
                    manifest = Manifest(place, pointer.version, pointer.pieces, self._since)
                    self._fields.stored.write(manifest, packed.pieces)
        except OutcomeUnknownError as lost:
            # Pieces may still arrive: the sweep removes them when they have.
            raise EngineUnavailableError(
                "No answer came for a part of an attachment. Its item was not written; try again.",
                operation=lost.operation,
                aws_code=lost.aws_code,
            ) from lost
        except EngineError:
            self.take_away()
            raise

    def take_away(self) -> None:
        """Remove the versions: it is certain that no item points to them."""
        if self._since is not None:
            self._fields.take_away(self._key, {n: each for n, each in self.pointers.items() if each is not None})
