"""Index entries that contradict their items.

A version that does not declare an index keeps the index keys that another version has stored, also when it changes a
field in them. Until the item is written by a version that declares the index, or mended by `verify`, its entry is
stale: it stands under a key that its fields no longer have. Listings of the index leave such entries out.
"""

from collections.abc import Mapping
from typing import Any

from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import InvalidKeyError, UndecodableItemError
from dynashard.keys import KeyTemplate
from dynashard.schema import REV, index_pk, index_sk


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
