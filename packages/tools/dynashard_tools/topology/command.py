"""`dynashard topology`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from dynashard import Collection, Entity, definition
from dynashard.reads import ShardLoad
from dynashard.topology import EpochState, partition_key
from dynashard_tools.connection import open_backend
from dynashard_tools.entities import exposed, logical_partition, models, partition_fields
from dynashard_tools.failure import CommandError
from dynashard_tools.options import AnyEntity, AsJson, Environment
from dynashard_tools.plot.figure import picture_format
from dynashard_tools.plot.shards import draw, total
from dynashard_tools.printing import blocks, fits, print_table, utc_text
from dynashard_tools.reshard.description import epoch
from dynashard_tools.reshard.description import shards as described
from dynashard_tools.topology.facts import Count, EntityFacts, facts, partition_count, shown

_BAR: Final = 30
_LISTED: Final = 50
"""Partitions with a count of their own that the table shows; JSON has all."""


def topology(
    entity: AnyEntity = None,
    partition: Annotated[
        str | None, typer.Argument(help="A logical partition, such as abc, to count the items of its shards.")
    ] = None,
    environment: Environment = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the shards of PARTITION into this file, .png or .svg.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show shard counts, their phases and history; or the items and bytes in each shard of one partition.

    Counting reads the whole partition: half a read unit for every 4 KB.
    """
    chosen = models() if entity is None else [exposed(entity).entity]
    if partition is not None:
        _partition(chosen[0], partition, environment, plot, as_json=as_json)
        return
    if plot is not None:
        raise CommandError("--plot draws the shards of one logical partition: name ENTITY and PARTITION")
    found = facts(open_backend(environment).topology, [definition(model) for model in chosen])
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in found]))
        return
    _show_counts(found)
    for each in found:
        _show_more(each, named=entity is not None)


def _partition(model: type[Entity], text: str, environment: str | None, plot: Path | None, *, as_json: bool) -> None:
    values, partition, entity = partition_fields(model, text), logical_partition(model, text), definition(model)
    if plot is not None:
        picture_format(plot)
    backend = open_backend(environment)
    count, own, marks = partition_count(backend.topology, entity, partition)
    with Console(stderr=True).status(f"reading {text}"):
        shards = backend.entities.collection(model).shards(values)
    if plot is not None:
        draw(plot, f"{partition}: {total(shards)} in {described(count.count)}", shards)
    epochs = _with_items(backend.entities.collection(model), values, count)
    if as_json:
        loads = [{"partition_key": s.partition_key, "items": s.items, "bytes": s.bytes} for s in shards]
        head = {"entity": entity.name, "partition": text, "key": partition_key(entity, partition), "own": own}
        typer.echo(json.dumps({**head, **count.as_dict(), "epochs": epochs, "marks": marks, "shards": loads}))
        return
    _show_shards(shards)
    scope = "a count of its own" if own else "the count of all partitions without their own"
    line = f"{total(shards)}; {described(count.count)}, {scope}"
    typer.echo(f"{line}; {count.resize}" if count.resize else line)
    _show_history(count)
    for each in epochs:
        typer.echo(_epoch(each))


def _show_counts(found: list[EntityFacts]) -> None:
    table = Table("entity", "placement", "shards", "declared", "change", "shards of indexes")
    for each in found:
        shards = each.entity.shards
        indexes = ", ".join(f"{name} {_with_resize(count)}" for name, count in each.indexes.items())
        declared = str(each.common.declared or "unsharded")
        placement = shards.placement if shards else ""
        table.add_row(
            each.entity.name, placement, shown(each.common.count), declared, each.common.resize or "none", indexes
        )
    print_table(table)


def _with_resize(count: Count) -> str:
    former = ", ".join(map(str, count.former))
    notes = [*([f"older entries by {former}"] if former else []), *([count.resize] if count.resize else [])]
    return f"{shown(count.count)} ({'; '.join(notes)})" if notes else shown(count.count)


def _show_more(found: EntityFacts, *, named: bool) -> None:
    if named:
        _show_history(found.common)
        for each in found.common.epochs:
            typer.echo(_epoch(each))
    if found.marks:
        typer.echo(f"a resize of {found.entity.name} is under way or not swept: relocation markers may be stored")
    if not found.partitions:
        return
    table = Table(f"partition of {found.entity.name}", "shards", "change", "since")
    for name, count in list(found.partitions.items())[:_LISTED]:
        at = count.since
        table.add_row(name, shown(count.count), count.resize or "none", "" if at is None else utc_text(at))
    print_table(table)
    if len(found.partitions) > _LISTED:
        typer.echo(f"and {len(found.partitions) - _LISTED:,} more: --json has all")


def _with_items(items: Collection[Any], values: Mapping[str, Any], count: Count) -> list[dict[str, Any]]:
    """The epochs of a partition, each with the number of its items, which are counted one epoch after the other.

    A void epoch has no items: its number is None.
    """
    found: list[dict[str, Any]] = []
    end = None
    for each in reversed(count.epochs):
        if each["state"] == EpochState.VOID:
            found.append({**each, "items": None})
        else:
            found.append({**each, "items": int(items.count(values, start=each["first"] or None, end=end))})
            end = each["first"]
    return found[::-1]


def _epoch(found: Mapping[str, Any]) -> str:
    return epoch(found["count"], found["since"], found["state"], found.get("items"))


def _show_history(count: Count) -> None:
    # In epochs, the times of keys say more than those of changes.
    if count.history and not count.epochs:
        typer.echo("history: " + ", ".join(f"{shown(number)} since {utc_text(at)}" for at, number in count.history))


def _show_shards(shards: Sequence[ShardLoad]) -> None:
    most = max((shard.items for shard in shards), default=0) or 1
    bars, plain = Table("partition key", "items", "bytes", ""), Table("partition key", "items", "bytes")
    for shard in shards:
        row = (shard.partition_key, f"{shard.items:,}", f"{shard.bytes:,}")
        bars.add_row(*row, blocks(round(shard.items / most * _BAR)))
        plain.add_row(*row)
    # In a narrow terminal, the bars would leave no place for the keys, whose ends are the numbers of the shards.
    print_table(bars if fits(bars) else plain)
