"""`dynashard topology`: shard counts, and how items lie in a logical partition."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from domain import ENTITIES
from dynashard import Entity, definition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.reads import ShardLoad
from tools.connection import open_backend
from tools.entities import exposed
from tools.failure import CommandError

_BAR: Final = 30


def topology(
    entity: Annotated[
        str | None, typer.Argument(help="An entity, such as users or user.v1.User; all if left out.")
    ] = None,
    partition: Annotated[
        str | None, typer.Argument(help="A logical partition, such as abc: count the items of its shards.")
    ] = None,
    environment: Annotated[
        str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show shard counts; with a partition, how many items and bytes each of its shards holds.

    Counting reads the whole partition: half a read unit for every 4 KB.
    """
    models = [each.entity for each in ENTITIES] if entity is None else [exposed(entity).entity]
    if partition is None:
        _show_counts(models, as_json=as_json)
        return
    values = _partition(models[0], partition)
    items = open_backend(environment).entities.collection(models[0])
    with Console(stderr=True).status(f"reading {partition}"):
        shards = items.shards(values)
    _show_shards(shards, as_json=as_json)


def _partition(model: type[Entity], text: str) -> dict[str, Any]:
    """The partition's fields from `abc` or `abc:engineering`: no such field holds a colon."""
    found = definition(model)
    fields, values = found.partition_fields, text.split(DEFAULT_SEPARATOR)
    if len(fields) != len(values):
        wanted = DEFAULT_SEPARATOR.join(fields)
        raise CommandError(f"a partition of {found.name} is given as {wanted}; {text!r} has {len(values)} parts")
    return {name: found.check_value(name, value) for name, value in zip(fields, values, strict=True)}


def _print(table: Table) -> None:
    # Keys are shown as they are: rich would take `:abc:` for an emoji.
    Console(emoji=False, markup=False).print(table)


def _show_counts(models: list[type[Entity]], *, as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    for model in models:
        found = definition(model)
        shards = found.shards
        rows.append({
            "entity": found.name,
            "placement": shards.placement if shards else None,
            "shards": shards.count if shards else None,
            "indexes": {index.name: index.shards.count if index.shards else None for index in found.indexes.values()},
        })  # fmt: skip
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("entity", "placement", "shards", "shards of indexes")
    for row in rows:
        indexes = ", ".join(f"{name} {count or 'unsharded'}" for name, count in row["indexes"].items())
        table.add_row(row["entity"], row["placement"] or "", str(row["shards"] or "unsharded"), indexes)
    _print(table)


def _show_shards(shards: Sequence[ShardLoad], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([{"partition_key": s.partition_key, "items": s.items, "bytes": s.bytes} for s in shards]))
        return
    most = max((shard.items for shard in shards), default=0) or 1
    table = Table("partition key", "items", "bytes", "")
    for shard in shards:
        bar = "█" * round(shard.items / most * _BAR)
        table.add_row(shard.partition_key, f"{shard.items:,}", f"{shard.bytes:,}", bar)
    _print(table)
