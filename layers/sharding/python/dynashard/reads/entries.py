"""Which rows of a listing readers may see: live items of the entities that are listed, and entries of them.

A version that does not declare an index keeps the index keys that another version has stored, also when it changes a
field in them. Until the item is written by a version that declares the index, or mended by `verify`, its entry is
stale: it stands under a key that its fields no longer have. Listings of the index leave such entries out.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import InvalidKeyError, UndecodableItemError
from dynashard.keys import KeyTemplate
from dynashard.reads.filters import FilterExpression
from dynashard.reads.query import Query
from dynashard.repository.conditions import is_damaged, is_live, is_marker
from dynashard.schema import PK, REV, TYPE, index_pk, index_sk
from dynashard.transport.interface import Wire


class VisibleRows(Struct, frozen=True):
    """Judges the rows of one listing. It does not know the layouts that use it, so nothing is left in a cycle.

    Attributes:
        query: the listing.
        decoders: the entities that are listed, by name.
        filters: those of the query.
        upgrades: whether one of the entities upgrades stored items.
        now: the time in epoch seconds by which items have expired.
    """

    query: Query
    decoders: Mapping[str, EntityDefinition[Any]]
    filters: FilterExpression
    upgrades: bool
    now: int

    def live(self, row: Wire) -> bool:
        """Whether a row is a live item, or a marker that leads nowhere, which is reported."""
        return (is_live(row, self.now) or is_damaged(row)) and self._ours(row)

    def listed(self, row: Wire) -> bool:
        """Whether a row is a live item or a relocation marker."""
        return (is_live(row, self.now) or is_marker(row)) and self._ours(row)

    def entered(self, row: Wire) -> bool:
        """Whether an index entry is to be listed: one that contradicts its item's fields is not."""
        return self.listed(row) and (is_marker(row) or self._current(row))

    def filtered(self, visible: Callable[[Wire], bool]) -> Callable[[Wire], bool]:
        """Return `visible` for rows of which DynamoDB has not filtered those of earlier versions."""
        if not self.upgrades or not self.filters.terms:
            return visible

        def passes(row: Wire) -> bool:
            if not visible(row):
                return False
            # Some are asked about by a few of their attributes, before they are read.
            return is_marker(row) or PK not in row or self.filters.matches(_readable(self._entity_of(row), row))

        return passes

    def returned(self, marker: Wire, item: Wire) -> bool:
        """Whether the item that a marker leads to is what the listing asks for, and still belongs where it was met."""
        if not self.filters.matches(_readable(self._entity_of(item), item)):
            return False
        index = self.query.index_definition
        if index is None:
            return True
        if lacking_key(index, item) is not None:
            # It is in the index only as its marker. Another program has done that, so the listing reports it.
            return True
        partition, sort = index_pk(index.slot), index_sk(index.slot)
        if partition not in item or item[sort] != marker[sort]:
            return False
        was, now = ({row[partition]["S"]} for row in (marker, item))
        for stored in (was, now):
            stored |= {key.rpartition(index.separator)[0] for key in stored}
        return not was.isdisjoint(now & set(self.query.partitions)) and self._current(item)

    def index_of(self, entity: EntityDefinition[Any]) -> IndexDefinition | None:
        """Return the index of an entity in the slot of the query."""
        return next((each for each in entity.indexes.values() if each.slot == self.query.slot), None)

    def _current(self, row: Wire) -> bool:
        entity = self._entity_of(row)
        index, row = self.index_of(entity), _readable(entity, row)
        # An item that contradicts its own key is not stale, but undecodable, which the listing reports.
        return index is None or is_current(entity, index, row) or not _at_its_key(entity, row)

    def _entity_of(self, row: Wire) -> EntityDefinition[Any]:
        return self.decoders.get(row[TYPE].get("S", "") if TYPE in row else "", self.query.entity)

    def _ours(self, row: Wire) -> bool:
        # Adopted data has no type yet, and the marker of a key that was created elsewhere has only its key. What has
        # something else in place of a type is nobody's, and is reported.
        return TYPE not in row or row[TYPE].get("S", self.query.entity.name) in self.decoders


def lacking_key(index: IndexDefinition, row: Mapping[str, Any]) -> str | None:
    """Return the key of an index that a stored item lacks although it has the other; None if it has both or none."""
    missing = [name for name in (index_pk(index.slot), index_sk(index.slot)) if name not in row]
    return missing[0] if len(missing) == 1 else None


def is_current(entity: EntityDefinition[Any], index: IndexDefinition, row: Mapping[str, Any]) -> bool:
    """Whether the fields of an index entry have the key under which it stands; True if that cannot be decided.

    An adopted item has no revision, and the key that another program gave it.
    """
    if REV not in row:
        return True
    partition, sort = row[index_pk(index.slot)]["S"], row[index_sk(index.slot)]["S"]
    if _stored_text(index.sort, row) == sort and _in(index, partition, _stored_text(index.partition, row)):
        return True
    # Formats and other types than text differ from what is stored.
    try:
        entry = index.entry(entity.decode_fields(row, index.fields))
    except (InvalidKeyError, UndecodableItemError):
        return True
    return entry is not None and entry.sort == sort and partition in _places(index, partition, entry.partition)


def _stored_text(template: KeyTemplate, row: Mapping[str, Any]) -> str | None:
    """The text of a key whose fields are stored as they stand in keys; None if a field is not stored."""
    texts = []
    for part in template.parts:
        stored = {"S": part} if isinstance(part, str) else row.get(part.name)
        if stored is None:
            return None
        [text] = stored.values()
        texts.append(text if isinstance(text, str) else "")
    return "".join(texts)


def _in(index: IndexDefinition, stored: str, partition: str | None) -> bool:
    """Whether a stored partition key is one of a logical partition of the index, given without the prefix."""
    if partition is None:
        return False
    return stored in _places(
        index, stored, f"{index.prefix}{index.separator}{partition}" if index.prefix else partition
    )


def _places(index: IndexDefinition, stored: str, partition: str) -> tuple[str, str]:
    """The stored keys that a logical partition may have: its own, and that of the shard in a stored one."""
    return partition, f"{partition}{index.separator}{stored.rpartition(index.separator)[2]}"


def _readable(entity: EntityDefinition[Any], row: Wire) -> Wire:
    """Return a stored item in the form of the present version, or as it is if that fails, which decoding reports."""
    if not entity.versions.differs(row) or is_marker(row):
        return row
    with suppress(UndecodableItemError):
        return dict(entity.versions.readable(entity, row))
    return row


def _at_its_key(entity: EntityDefinition[Any], row: Wire) -> bool:
    try:
        return entity.misplaced(entity.decode_fields(row, entity.key_fields), row) is None
    except UndecodableItemError:
        return False
