"""What a command line names, as what a change of a shard count concerns; and the way back."""

from collections.abc import Iterator
from typing import Any

from dynashard import definition
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.resharding import Resharder, Scope, Status
from dynashard.topology import TopologyTable, family_of
from tools.connection import Backend
from tools.entities import exposed, logical_partition, models, partition_fields
from tools.failure import CommandError


def named_scope(entity: str, partition: str | None, index: str | None) -> Scope:
    """What ENTITY, PARTITION and --index name.

    Raises:
        CommandError: an unknown entity or index, a partition of other parts, or a partition with an index.
        InvalidKeyError, InvalidValueError: a value that cannot stand in a partition.
    """
    model = exposed(entity).entity
    if index is None:
        return Scope(definition(model), None if partition is None else logical_partition(model, partition))
    if partition is not None:
        raise CommandError("an index has one count for all partitions: leave PARTITION out")
    return Scope(definition(model), index=_index(definition(model), index))


def _index(entity: EntityDefinition[Any], name: str) -> IndexDefinition:
    if name not in entity.indexes:
        known = ", ".join(entity.indexes) or "none"
        raise CommandError(f"{entity.name} has no index {name!r}; there are: {known}")
    return entity.indexes[name]


def all_scopes(backend: Backend, resharder: Resharder, entity: str) -> list[Scope]:
    """Every logical partition of an entity: those with a count of their own one by one, then all others at once.

    Raises:
        CommandError: an unknown entity.

    Cost: 1 read unit; where single partitions differ, a Scan of the topology table.
    """
    found = definition(exposed(entity).entity)
    return [*own_scopes(backend, resharder, found), Scope(found)]


def own_scopes(backend: Backend, resharder: Resharder, entity: EntityDefinition[Any]) -> list[Scope]:
    """The logical partitions of an entity that have a count of their own. Cost: as `all_scopes`."""
    table, family = TopologyTable(backend.transport, backend.topology_table), family_of(entity)
    record = table.find(family)
    if record is None or record.differ_since is None:
        return []
    keys = (each.key for each in table.own(family))
    return [resharder.scope(key) for key in sorted(keys) if key.startswith(f"{family}:")]


def require_items(backend: Backend, entity: str, partition: str) -> None:
    """Refuse a logical partition that holds nothing and has no count of its own: its name may be mistyped.

    Raises:
        CommandError: it holds no item of any entity of the family.

    Cost: 1 read unit; if it has no count of its own, 1 Query of 0.5 read units for each shard, until one has items.
    """
    scope = named_scope(entity, partition, None)
    if TopologyTable(backend.transport, backend.topology_table).find(scope.key) is not None:
        return
    model = exposed(entity).entity
    others = [each for each in models() if each is not model and family_of(definition(each)) == scope.family]
    found = backend.entities.collection(model, *others)
    fields, cursor = partition_fields(model, partition), None
    while True:
        page = found.list(fields, order="shard", limit=1, cursor=cursor, consistent=True)
        if page.items:
            return
        if page.cursor is None:
            raise CommandError(
                f"{scope.partition} holds no items: check the name. To change the count of a partition that is still "
                "to be filled, add --create"
            )
        cursor = page.cursor


def busy_of(resharder: Resharder, entity: str) -> list[Status]:
    """The changes of an entity that are wanted, under way or not swept.

    Raises:
        CommandError: an unknown entity.

    Cost: as `Resharder.busy`.
    """
    family = family_of(definition(exposed(entity).entity))
    return [status for status in resharder.busy() if resharder.scope(status.key).family == family]


def entity_of(status: Status) -> EntityDefinition[Any]:
    """The entity of a change."""
    return next(each for each in map(definition, models()) if each.name == status.entity)


def arguments(status: Status) -> str:
    """What names a change on the command line: `user.v1.User abc`."""
    return " ".join(_words(status))


def _words(status: Status) -> Iterator[str]:
    entity = entity_of(status)
    yield entity.name
    if status.partition is not None:
        yield status.partition.removeprefix(f"{entity.prefix}{entity.separator}" if entity.prefix else "")
    if status.index is not None:
        yield from ("--index", next(i.name for i in entity.indexes.values() if i.slot == status.index))
