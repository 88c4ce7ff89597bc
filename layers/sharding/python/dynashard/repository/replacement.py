"""Replacing a live item: an UpdateItem that writes what an entity declares, and leaves every other attribute.

Another version of the software may have stored attributes that this one does not declare. A PutItem would erase them,
so an item is put as a whole only where none is live.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.repository.writes import Kind, Write
from dynashard.schema import BORN, MOVED_FROM, PK, PREV, REV, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Wire


@lru_cache(maxsize=1024)
def owned_attributes(entity: EntityDefinition[Any]) -> frozenset[str]:
    """Return the stored attributes that an entity's writes decide about: declared ones, and those of the layer.

    An index slot that the entity does not use, and the time of expiry of an entity that never expires, belong to
    others.
    """
    slots = [index.slot for index in entity.indexes.values()]
    keys = {name(slot) for slot in slots for name in (index_pk, index_sk)}
    fields = entity.attributes_of(entity.model.model_fields)
    return frozenset({PK, SK, TYPE, REV, PREV, BORN, MOVED_FROM, *keys, *fields})


def undeclared(entity: EntityDefinition[Any], stored: Mapping[str, Any]) -> Wire:
    """Return the attributes of a stored item that the entity does not declare."""
    owned = owned_attributes(entity)
    return {name: value for name, value in stored.items() if name not in owned}


def replacing(entity: EntityDefinition[Any], write: Write) -> Write:
    """Return the put of an item as the update that writes it over a live one; others as they are."""
    if write.operation != "PutItem" or write.kind is Kind.CREATE or write.item is None:
        return write
    return write._replace(operation="UpdateItem", options={**write.options, **replacement(entity, write.item)})


def replacement(entity: EntityDefinition[Any], item: Wire) -> dict[str, Any]:
    """Return the parts of an UpdateItem request that store an item, without its stored key, over a live one."""
    expression, names = _expression(entity, tuple(item))
    values = {f":{number}": value for number, value in enumerate(item.values())}
    return {
        "UpdateExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


@lru_cache(maxsize=1024)
def _expression(entity: EntityDefinition[Any], stored: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    removed = sorted(owned_attributes(entity) - {PK, SK, *stored})
    names = {f"#{number}": name for number, name in enumerate([*stored, *removed])}
    assigned = ",".join(f"#{number}=:{number}" for number in range(len(stored)))
    erased = ",".join(f"#{len(stored) + number}" for number in range(len(removed)))
    return f"SET {assigned} REMOVE {erased}" if removed else f"SET {assigned}", names
