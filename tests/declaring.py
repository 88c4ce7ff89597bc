"""Make entity classes within tests of declarations."""

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

from dynashard import Entity, Index, Key, Registry

NAME = "thing.v1.Thing"
KEY = Key(partition="{tenant}", sort="{id}")


def declare(
    fields: dict[str, Any] | None = None,
    *,
    name: str = NAME,
    key: Key = KEY,
    registry: Registry | None = None,
    any_width: bool = False,
    **declared: Any,
) -> type[Entity]:
    """Return an entity class with the text fields `tenant` and `id`, and further fields.

    Args:
        fields: further fields as `name: annotation` or `name: (annotation, default)`.
        name: the name of the entity.
        key: its key.
        registry: its registry; a new one by default.
        any_width: whether numbers in its sort keys need no fixed width.
        declared: further arguments of the class.
    """
    if any_width:
        key = replace(key, unpadded=_bare_numbers(key.sort or "", fields or {}))
        declared["indexes"] = [
            replace(index, unpadded=_bare_numbers(index.sort, fields or {})) for index in declared.get("indexes", ())
        ]
    annotations: dict[str, Any] = {"tenant": str, "id": str}
    values: dict[str, Any] = {}
    for field, kind in (fields or {}).items():
        annotations[field], *default = kind if isinstance(kind, tuple) else (kind,)
        values |= dict.fromkeys([field], *default) if default else {}
    namespace = {"__annotations__": annotations, "__module__": __name__, **values}
    # An empty registry is false, so `or` would replace it.
    chosen = Registry() if registry is None else registry
    return new_class("Thing", namespace, name=name, key=key, registry=chosen, **declared)


def _bare_numbers(template: str, fields: dict[str, Any]) -> tuple[str, ...]:
    found = re.findall(r"(?<!\{)\{(\w+)(?::(?!0\d)[^}]*)?\}", template)
    return tuple(name for name in found if fields.get(name) is int)


def new_class(called: str, namespace: dict[str, Any], **declared: Any) -> type[Entity]:
    """Create an entity class as a class statement does."""
    meta: Any = type(Entity)
    created: type[Entity] = meta(called, (Entity,), namespace, **declared)
    return created


def sorted_by(template: str) -> Key:
    """Return a key with this sort template."""
    return Key(partition="{tenant}", sort=template)


def declare_two(one: dict[str, Any], other: dict[str, Any]) -> Registry:
    """Declare the entities `one` and `other` with one key prefix, and return their registry."""
    registry = Registry()
    for name, declared in (("one", one), ("other", other)):
        shards, indexes = declared.get("shards"), declared.get("indexes", ())
        key = Key(declared.get("partition", "{tenant}"), declared.get("sort", "a#{id}"), prefix="team")
        fields = {"n": int, "at": datetime}
        declare(fields, name=name, key=key, shards=shards, indexes=indexes, registry=registry, any_width=True)
    return registry


def an_index(
    slot: str = "GSI1", name: str = "by_id", partition: str = "{tenant}", sort: str = "{id}", **more: Any
) -> Index:
    """Return an index of the slot GSI1, `by_id`, unless other parts are given."""
    return Index(slot, name, partition=partition, sort=sort, **more)
