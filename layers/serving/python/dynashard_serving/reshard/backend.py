"""The sharding layer as these functions use it: every entity of the domain, and what changes their counts."""

from collections.abc import Mapping
from typing import Any

from dynashard import definition
from dynashard.errors import InputError
from dynashard.resharding import Resharder, Scope, Share
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport import Transport
from dynashard_serving.domain import Domain, declared
from dynashard_serving.reshard.settings import Settings


def resharder_of(
    settings: Settings,
    transport: Transport,
    *,
    domain: Domain | None = None,
    runtime: Runtime = SYSTEM,
) -> Resharder:
    """Return what changes the counts of the domain's entities."""
    return Resharder(
        transport,
        table=settings.table,
        topology_table=settings.topology_table,
        entities=list((domain or declared()).models),
        timing=settings.timing,
        concurrency=settings.concurrency,
        share=Share(settings.growth.mover_share),
        most_seconds=settings.growth.most_seconds,
        runtime=runtime,
    )


def scope_of(
    entity: str,
    partition: Mapping[str, Any] | None = None,
    index: str | None = None,
    domain: Domain | None = None,
) -> Scope:
    """The scope that a caller names.

    Args:
        entity: the entity by its name, `user.v1.User`, or its outside one, `users`.
        partition: fields of a logical partition; None for all of them.
        index: an index by its name; its count is one for all partitions.
        domain: whose entities; by default those of the package `domain`.

    Raises:
        InputError: there is no such entity or index, or the fields are not those of a partition.
    """
    entities = (domain or declared()).entities
    found = [each.entity for each in entities if entity in (each.path, definition(each.entity).name)]
    if not found:
        names = ", ".join(definition(each.entity).name for each in entities)
        raise InputError(f"no entity is called {entity!r}; there are {names}", field="entity")
    known = definition(found[0])
    if index is not None:
        if partition is not None:
            raise InputError("an index has one count for all partitions: leave partition out", field="partition")
        if index not in known.indexes:
            names = ", ".join(known.indexes) or "none"
            raise InputError(f"{known.name} has no index {index!r}; there are {names}", field="index")
        return Scope(known, index=known.indexes[index])
    if partition is None:
        return Scope(known)
    unknown = sorted(partition.keys() - set(known.partition_fields))
    if unknown:
        fields = ", ".join(known.partition_fields)
        raise InputError(f"a partition of {known.name} has the fields {fields}, not {unknown[0]}", field="partition")
    checked = {name: known.assignment.check(name, value) for name, value in partition.items()}
    return Scope(known, partition=known.logical_partition(checked))
