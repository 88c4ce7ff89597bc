"""`dynashard plot`."""

from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from dynashard import Entity, Order, definition
from dynashard.routing import home, rule_of, shard_keys
from dynashard.topology import TopologyTable
from tools.connection import Backend, open_backend
from tools.entities import exposed, logical_partition, names_beginning, partition_fields
from tools.failure import CommandError
from tools.plot import order as order_picture
from tools.plot import shards as shards_picture
from tools.plot.figure import picture_format
from tools.plot.order import Brought
from tools.plot.shards import total
from tools.topology.facts import partition_count, shown

PAGE: Final = 500
"""Items a page: a dot for each, in the order of pages that a client would see."""

plot = typer.Typer(help="Draw live data: how shards are filled, in which order listings come.", no_args_is_help=True)

EntityName = Annotated[
    str, typer.Argument(help="An entity, such as users or user.v1.User.", autocompletion=names_beginning)
]
Partition = Annotated[str, typer.Argument(help="A logical partition, such as abc.")]
File = Annotated[Path, typer.Argument(help="The picture, .png or .svg; replaced if it is there.")]
Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]


@plot.command("shards")
def plot_shards(entity: EntityName, partition: Partition, file: File, environment: Environment = None) -> None:
    """Draw how many items and bytes each shard of a partition holds.

    Reads the whole partition: half a read unit for every 4 KB.
    """
    model = exposed(entity).entity
    picture_format(file)
    values, name = partition_fields(model, partition), logical_partition(model, partition)
    loads = open_backend(environment).entities.collection(model).shards(values)
    shards_picture.draw(file, f"{name}: {total(loads)} in {len(loads)} shards", loads)
    typer.echo(f"{file}: {total(loads)} in {len(loads)} shards")


@plot.command("order")
def plot_order(
    entity: EntityName,
    partition: Partition,
    file: File,
    order: Annotated[
        Literal["round_robin", "ordered", "shard"], typer.Option("--order", help="Which listing to draw.")
    ] = "round_robin",
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Items to draw at most.")] = 10_000,
    page: Annotated[int, typer.Option("--page", min=1, max=1000, help="Items a page.")] = PAGE,
    environment: Environment = None,
) -> None:
    """Draw the order in which a listing brings items against their true order, coloured by shard.

    Reads what the listing reads.
    """
    model = exposed(entity).entity
    picture_format(file)
    if not rule_of(definition(model)).fixed:
        raise CommandError(f"{entity} have random placement: no key tells its shard. Use another entity")
    brought, count = _brought(open_backend(environment), model, partition, Order(order), limit=limit, page=page)
    name = logical_partition(model, partition)
    if not brought:
        raise CommandError(f"{name} has no items: there is no order to draw")
    order_picture.draw(file, f"{name}: {order} over {shown(count)}", brought, shards=max(count, 1))
    late = order_picture.inversions(order_picture.ranks(brought))
    typer.echo(f"{file}: {len(brought):,} items, {late:,} of them directly after one that should come later")


def _brought(
    backend: Backend, model: type[Entity], partition: str, order: Order, *, limit: int, page: int
) -> tuple[list[Brought], int]:
    entity, values = definition(model), partition_fields(model, partition)
    logical = logical_partition(model, partition)
    count, _, _ = partition_count(TopologyTable(backend.transport, backend.topology_table), entity, logical)
    keys = shard_keys(rule_of(entity), logical, entity.separator, count.count)
    numbers = {key: number for number, key in enumerate(keys)}
    pages = backend.entities.collection(model).pages(values, order=order, limit=min(limit, page))
    items = islice(chain.from_iterable(each.items for each in pages), limit)
    found = [entity.key_of(item) for item in items]
    return [Brought(key.sort, numbers[home(entity, key, count.count)]) for key in found], count.count
