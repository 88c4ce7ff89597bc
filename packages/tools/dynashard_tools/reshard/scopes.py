"""Finds what a resize concerns: a whole entity, one of its partitions, or an index."""

from typing import Any

from dynashard import definition
from dynashard.entity import EntityDefinition
from dynashard.resharding import Resharder, Scope, Status
from dynashard.topology import family_of
from dynashard_tools.connection import Backend
from dynashard_tools.entities import exposed, logical_partition, models, partition_fields
from dynashard_tools.failure import CommandError


def named_scope(entity: str, partition: str | None, index: str | None) -> Scope:
    """Return the scope that ENTITY, PARTITION and --index name.

    Raises:
        CommandError: an unknown entity or index, a partition of other parts, or a partition with an index.
        InvalidKeyError, InvalidValueError: a value cannot be part of a key.
    """
    model = exposed(entity).entity
    found = definition(model)
    if index is None:
        return Scope(found, None if partition is None else logical_partition(model, partition))
    if partition is not None:
        raise CommandError("an index has one count for all partitions: leave PARTITION out")
    if index not in found.indexes:
        raise CommandError(f"{found.name} has no index {index!r}. There are: {', '.join(found.indexes) or 'none'}")
    return Scope(found, index=found.indexes[index])


def all_scopes(backend: Backend, resharder: Resharder, entity: str) -> list[Scope]:
    """Return every partition with a count of its own, and then all others as one scope.

    Cost: 1 read unit; if single partitions differ, a Scan of the topology table.
    """
    found = definition(exposed(entity).entity)
    return [*own_scopes(backend, resharder, found), Scope(found)]


def own_scopes(backend: Backend, resharder: Resharder, entity: EntityDefinition[Any]) -> list[Scope]:
    """Return the logical partitions of an entity that have a count of their own. Cost: as `all_scopes`."""
    table, family = backend.topology, family_of(entity)
    record = table.find(family)
    if record is None or record.differ_since is None:
        return []
    keys = (each.key for each in table.own(family))
    return [resharder.scope(key) for key in sorted(keys) if key.startswith(f"{family}:")]


def require_items(backend: Backend, entity: str, partition: str) -> None:
    """Refuse a logical partition that holds nothing and has no count of its own, because its name may be mistyped.

    Raises:
        CommandError: it holds no item of any entity of the family.

    Cost: 1 read unit; if it has no count of its own, 1 Query of 0.5 read units for each shard, until one has items.
    """
    scope = named_scope(entity, partition, None)
    if backend.topology.find(scope.key) is not None:
        return
    model = exposed(entity).entity
    others = [each for each in models() if each is not model and family_of(definition(each)) == scope.family]
    found = backend.entities.collection(model, *others)
    pages = found.pages(partition_fields(model, partition), order="shard", limit=1, consistent=True)
    if not any(page.items for page in pages):
        raise CommandError(
            f"{scope.partition} holds no items: check the name. To change the count of a partition that is still "
            "to be filled, add --create"
        )


def busy_of(resharder: Resharder, entity: str) -> list[Status]:
    """Return the resizes of an entity that are requested, under way or not swept. Cost: as `Resharder.busy`."""
    family = family_of(definition(exposed(entity).entity))
    return [status for status in resharder.busy() if resharder.scope(status.key).family == family]
