"""From a record of the table's stream to the change of an item, or to none.

The stream has every write of a stored item. Some of them are the layer's own housekeeping and change nothing that
a reader could see:

    before            after             what it is                                  reported as
    nothing           item              a create, in every phase                    created
    nothing           moved copy        a move, its half at the new home            nothing
    nothing           mark              a create, its half at the old home          nothing
    item              mark              a move, its half at the old home            nothing
    mark              mark, nothing     a mark is renewed or swept                  nothing
    item              nothing           a delete; expired if it was past its time   deleted, expired
    item              the same item     its index keys were rewritten               nothing
    item              item              a replace or an update                      updated
    expired item      item              a create that DynamoDB's TTL was late for   created

A moved copy bears `MovedFrom` until its next real write, which is reported as `updated`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dynashard.entity import Entity, EntityDefinition, definition, expiry
from dynashard.routing import logical_partition_of
from dynashard.schema import INDEX_SLOTS, MOVED_FROM, MOVED_TO, PK, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Wire
from dynashard_patterns.changes.change import Change, Kind

_TTL: Final = "dynamodb.amazonaws.com"
_KEPT_UP: Final = frozenset({MOVED_FROM, *(name(slot) for slot in INDEX_SLOTS for name in (index_pk, index_sk))})
"""Attributes that the layer rewrites without a change of the item."""


def watched(models: Iterable[type[Entity]]) -> dict[str, EntityDefinition[Any]]:
    """A registry of just these entities, for `decode`."""
    return {definition(model).name: definition(model) for model in models}


def decode(record: Mapping[str, Any], registry: Mapping[str, EntityDefinition[Any]]) -> Change[Any] | None:
    """Return the change in a record of the stream.

    Args:
        record: as Lambda hands it on; the stream's view is `NEW_AND_OLD_IMAGES`.
        registry: the entities that matter, by name: a `Registry`, or what `watched` gives.

    Returns:
        The change; None if the item is of no such entity, or if nothing has changed for its readers.

    Raises:
        UndecodableItemError: the item does not fit its entity's declaration.

    Cost: no request.
    """
    images = record["dynamodb"]
    old, new = images.get("OldImage"), images.get("NewImage")
    kind = kind_of(record)
    entity = None if kind is None else entity_of(new or old, registry)
    if kind is None or entity is None:
        return None
    before = entity.decode(old) if old and kind != "created" else None
    after = entity.decode(new) if new else None
    fields = (after or before).__dict__
    key = {name: fields[name] for name in entity.key_fields}
    at = images.get("ApproximateCreationDateTime")
    return Change(kind, entity.model, key, before, after, images["SequenceNumber"], None if at is None else float(at))


def kind_of(record: Mapping[str, Any]) -> Kind | None:
    """Return what a record reports of its item, whatever the item is; None if nothing has changed for readers."""
    old, new = record["dynamodb"].get("OldImage"), record["dynamodb"].get("NewImage")
    if new is None:
        if old is None or MOVED_TO in old:
            return None
        return "expired" if _by_ttl(record) or _past(old, record) else "deleted"
    if MOVED_TO in new or (old is not None and _lasting(old, new)):
        return None
    fresh = old is None or MOVED_TO in old or _past(old, record)
    if MOVED_FROM in new and (fresh or MOVED_FROM not in (old or {})):
        return None
    return "created" if fresh else "updated"


def _lasting(old: Wire, new: Wire) -> bool:
    """Whether two images differ in nothing but what the layer keeps up by itself."""
    names = (old.keys() | new.keys()) - _KEPT_UP
    return all(old.get(name) == new.get(name) for name in names)


def _past(image: Wire, record: Mapping[str, Any]) -> bool:
    """Whether an item was gone for readers when the record was written."""
    at, ends = record["dynamodb"].get("ApproximateCreationDateTime"), expiry(image)
    return at is not None and ends is not None and ends <= float(at)


def _by_ttl(record: Mapping[str, Any]) -> bool:
    identity = record.get("userIdentity") or {}
    return _TTL in (identity.get("principalId"), identity.get("PrincipalId"))


def entity_of(image: Wire, registry: Mapping[str, EntityDefinition[Any]]) -> EntityDefinition[Any] | None:
    """Return the entity of a stored item, by its type or else by its keys; None if it is none of the registry."""
    if TYPE in image:
        # Another program may have stored something else under this name.
        return registry.get(image[TYPE].get("S"))
    return next((entity for entity in registry.values() if _fits(entity, image)), None)


def _fits(entity: EntityDefinition[Any], image: Wire) -> bool:
    """Whether an adopted item, which may have no type yet, has the keys of an entity."""
    from dynashard.resharding.scope import fits, shape  # noqa: PLC0415 - the API serves without resharding

    partition = logical_partition_of(entity, image[PK]["S"])
    return fits(entity, partition) and bool(shape(entity.sort).fullmatch(image[SK]["S"]))
