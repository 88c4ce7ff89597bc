"""Replacing a live item: an UpdateItem that writes what an entity declares, and leaves every other attribute.

Another version of the software may have stored attributes that this one does not declare. A PutItem would erase them,
so an item is put as a whole only where none is live. If the replaced item was read at the revision that the write
demands, only what differs from it is written, so members of nested objects that are not declared stay as well.

A write that has read nothing sets whole objects, so it demands that they hold nothing else. Of an object, all declared
members are stored, also those that are None. So an object that has all of them, and no more members than there are, has
no others; and a condition can demand that. If it fails, the item is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace
from pydantic import BaseModel, RootModel

from dynashard.entity import Entity, EntityDefinition
from dynashard.entity.stored_lists import StoredLists
from dynashard.entity.versions import Upgraded, upgraded_from
from dynashard.errors import InvalidQueryError, UndecodableItemError
from dynashard.repository.assumed import Complete, with_assumed
from dynashard.repository.conditions import Condition
from dynashard.repository.list_alignment import aligned
from dynashard.repository.path_updates import MOST_CHARACTERS, PathUpdates
from dynashard.repository.write import Kind, Write
from dynashard.schema import BORN, EXPIRES_AT, MOVED_FROM, PK, PREV, REV, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Wire

_MOST_OF_CONDITION: Final = 3072
"""Of the condition, because DynamoDB takes 4,096, and a write demands more than this."""
_MOST_OPERATORS: Final = 250
"""Of the condition, each AND included, because DynamoDB takes 300, and a write demands more than this."""

NEVER: Final = Condition("attribute_not_exists(PK)")
"""Fails for every stored item, so that it is read: the condition on its objects would be too large."""

_Path = tuple[str, ...]


@lru_cache(maxsize=1024)
def owned_attributes(entity: EntityDefinition[Any]) -> frozenset[str]:
    """Return the stored attributes that an entity's writes decide about: declared ones, and those of the layer.

    An index slot that the entity does not use, and the time of expiry of an entity that never expires, belong to
    others.
    """
    slots = [index.slot for index in entity.indexes.values()]
    keys = {name(slot) for slot in slots for name in (index_pk, index_sk)}
    fields = entity.attributes_of(entity.model.model_fields)
    return frozenset({PK, SK, TYPE, REV, PREV, BORN, MOVED_FROM, *keys, *fields, *entity.versions.stored})


def kept(entity: EntityDefinition[Any], stored: Mapping[str, Any], item: Mapping[str, Any]) -> Wire:
    """Return what an item that replaces a stored one must take from it: what the entity does not declare.

    These are attributes of the stored item, and those of the new one with the undeclared members of objects.
    """
    owned = owned_attributes(entity)
    found = {name: value for name, value in stored.items() if name not in owned}
    if entity.nested:
        with suppress(UndecodableItemError):
            before = _declared(entity, entity.decode(stored))
            for name in item.keys() & before.keys() & stored.keys():
                found[name] = _with_members(stored[name], before[name], item[name], entity.stored_lists.of(name))
    return found


def _with_members(stored: Wire, before: Wire, after: Wire, lists: StoredLists) -> Wire:
    """A new value with the members of the stored one that are not declared: those that decoding it left out."""
    if lists.items is not None and "L" in stored and "L" in before and "L" in after:
        places = aligned(before["L"], after["L"])
        pairs = zip(places, after["L"], strict=True)
        return {
            "L": [
                new if at is None else _with_members(stored["L"][at], before["L"][at], new, lists.items)
                for at, new in pairs
            ]
        }
    if not ("M" in stored and "M" in before and "M" in after):
        return after
    old, known = stored["M"], before["M"]
    others = {} if isinstance(known, Complete) else {name: value for name, value in old.items() if name not in known}
    shared = old.keys() & known.keys()
    return {
        "M": others
        | {n: _with_members(old[n], known[n], v, lists.of(n)) if n in shared else v for n, v in after["M"].items()}
    }


def _declared(entity: EntityDefinition[Any], over: Entity) -> Wire:
    """The attributes of an item that was read, as far as they are declared and inside the item."""
    read = over.model_fields_set - entity.attachments.keys()
    values = {name: value for name, value in over.__dict__.items() if name in read}
    declared = entity.encode(values)
    if not entity.nested:
        return declared
    return {
        name: with_assumed(values.get(name), value, typed_dicts=entity.typed_dicts) for name, value in declared.items()
    }


def replacing(entity: EntityDefinition[Any], write: Write, over: Entity | None = None) -> Write:
    """Return the put of an item as the update that writes it over a live one; others as they are.

    `over` is the live item, if it was read at the revision that the write demands.
    """
    if write.operation != "PutItem" or write.kind is Kind.CREATE or write.item is None:
        return write
    upgraded = None if over is None else upgraded_from(over.revision)
    if upgraded is not None:
        update = rewriting(entity, write.item, upgraded)
    else:
        update = replacement(entity, write.item) if over is None else difference(entity, write.item, over)
    return replace(write, operation="UpdateItem", options={**write.options, **update})


def revision_read(over: Entity, if_match: str | None) -> str:
    """Return the revision of an item that was read and is to be replaced; `InvalidQueryError` if it has none."""
    if over.revision is None:
        raise InvalidQueryError("over is an item that was never stored; pass it as it was read", field="over")
    if if_match is not None:
        raise InvalidQueryError("over names a revision itself; leave if_match out", field="if_match")
    return over.revision


def rewriting(entity: EntityDefinition[Any], item: Wire, upgraded: Upgraded) -> dict[str, Any]:
    """Return what `replacement` returns, for an item that was read from the form of an earlier version.

    All of it is written, with what the entity does not declare. What the upgrade has dropped is removed.
    """
    whole = {**item, **kept(entity, upgraded.wire, item)}
    expression, names, placeholders = _expression(entity, tuple(whole), upgraded.dropped)
    return {
        "UpdateExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": dict(zip(placeholders, whole.values(), strict=True)),
    }


def replacement(entity: EntityDefinition[Any], item: Wire) -> dict[str, Any]:
    """Return the parts of an UpdateItem request that store an item, without its stored key, over a live one."""
    expression, names, placeholders = _expression(entity, tuple(item))
    return {
        "UpdateExpression": expression,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": dict(zip(placeholders, item.values(), strict=True)),
    }


@lru_cache(maxsize=1024)
def _expression(
    entity: EntityDefinition[Any], stored: Sequence[str], dropped: frozenset[str] = frozenset()
) -> tuple[str, Mapping[str, str], Sequence[str]]:
    """The expression that stores these attributes and removes others, and the placeholders of names and of values."""
    removed = sorted((owned_attributes(entity) | dropped) - {PK, SK, *stored})
    names = {f"#{number}": name for number, name in enumerate([*stored, *removed])}
    values = [f":{number}" for number in range(len(stored))]
    assigned = ",".join(f"#{value[1:]}={value}" for value in values)
    erased = ",".join(f"#{len(stored) + number}" for number in range(len(removed)))
    return f"SET {assigned} REMOVE {erased}" if removed else f"SET {assigned}", names, values


def difference(entity: EntityDefinition[Any], item: Wire, over: Entity) -> dict[str, Any]:
    """Return what `replacement` returns, for a write that demands the revision of the item `over` that was read.

    Fields that are equal in both are not written, and of objects only the members that differ. If that takes more than
    an expression can hold, fields that differ are written as a whole. The expiry is always written: DynamoDB deletes
    items at the stored time, of which a `Retention` may have made an earlier one for readers.
    """
    before = {name: value for name, value in _declared(entity, over).items() if name != EXPIRES_AT}
    fields = entity.attributes_of(entity.model.model_fields.keys() - {*entity.attachments, entity.expires})
    unread = owned_attributes(entity) - {PK, SK, *fields}
    for deep in (True, False):
        updates = PathUpdates()
        for name in sorted(item.keys() | before.keys() | unread):
            lists = entity.stored_lists.of(name)
            updates.compare((name,), before.get(name), item.get(name), deep=deep, known=name not in unread, lists=lists)
        parts = updates.parts()
        if len(parts["UpdateExpression"]) <= MOST_CHARACTERS:
            break
    return parts


def objects_read(entity: EntityDefinition[Any], stored: Wire, current: Entity) -> Wire:
    """Return the declared part of the objects in a stored item, by attribute; `current` is that item, decoded.

    An update that demands its revision can then change their members one by one. Lists of objects are among them.
    """
    if not entity.nested:
        return {}
    # A validator may make an object of another stored value, which has no members to set.
    return {
        name: value
        for name, value in _declared(entity, current).items()
        if "M" in stored.get(name, ())
        or ("L" in stored.get(name, ()) and entity.stored_lists.of(name).items is not None)
    }


def only_declared(entity: EntityDefinition[Any], fields: Mapping[str, Any], stored: Wire) -> Condition | None:
    """Return the condition that the stored objects in some fields have no members besides the declared ones.

    `fields` are new values, and `stored` has them as they will be stored. None if there is no object among them. What
    is not stored, or is not an object, meets the condition. Objects in lists are not judged.
    """
    aliases: dict[str, str] = {}
    values: dict[str, Any] = {":map": {"S": "M"}}
    terms: list[str] = []
    operators = 0

    def alias(name: str) -> str:
        return aliases.setdefault(name, f"#o{len(aliases)}")

    for name, value in fields.items():
        [attribute] = entity.attributes_of([name])
        for path, members in _objects(value, stored.get(attribute, {}), (attribute,), typed_dicts=entity.typed_dicts):
            at = ".".join(map(alias, path))
            count = f":o{len(members)}"
            values[count] = {"N": str(len(members))}
            has = [f"attribute_exists({at}.{alias(member)})" for member in members]
            whole = " AND ".join([f"size({at}) = {count}", *has])
            terms.append(f"(NOT attribute_type({at}, :map) OR {whole})")
            operators += 6 + 2 * len(members)
    if not terms:
        return None
    expression = " AND ".join(terms)
    if len(expression) > _MOST_OF_CONDITION or operators > _MOST_OPERATORS:
        return NEVER
    return Condition(expression, values, {alias: name for name, alias in aliases.items()})


def _objects(value: Any, stored: Wire, path: _Path, *, typed_dicts: bool) -> Iterator[tuple[_Path, list[str]]]:
    """The paths of the objects in a value, each with the names of its members."""
    if "M" not in stored:
        return
    members: Wire = stored["M"]
    if isinstance(value, RootModel):
        yield from _objects(value.root, stored, path, typed_dicts=typed_dicts)
        return
    mapping = isinstance(value, Mapping)
    if isinstance(value, BaseModel) or is_dataclass(value) or (mapping and typed_dicts):
        yield path, list(members)
    for name, member in members.items():
        inner = value.get(name) if mapping else getattr(value, name, None)
        yield from _objects(inner, member, (*path, name), typed_dicts=typed_dicts)
