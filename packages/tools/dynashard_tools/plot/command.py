"""`dynashard plot`."""

from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from dynashard import Entity, Order, definition
from dynashard.routing import stored_partitions
from dynashard_tools.connection import Backend, open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import exposed, logical_partition, partition_fields
from dynashard_tools.failure import CommandError
from dynashard_tools.left_out import LeftOut
from dynashard_tools.options import EntityName, Environment, Partition
from dynashard_tools.plot import order as order_picture
from dynashard_tools.plot import shards as shards_picture
from dynashard_tools.plot.figure import picture_format
from dynashard_tools.plot.order import Listed
from dynashard_tools.plot.shards import total
from dynashard_tools.topology.facts import partition_count, shown

PAGE: Final = 500
"""Items a page; each item is a dot, in the order that a client would see."""

plot = typer.Typer(
    help="Draw live data: how items are spread over shards, and the order of listings.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(help="The picture, .png or .svg; replaced if it exists.")]


@plot.command("shards")
def plot_shards(entity: EntityName, partition: Partition, file: File, environment: Environment = None) -> None:
    """Draw how many items and bytes each shard of a partition holds.

    Reads the whole partition: half a read unit for every 4 KB.
    """
    model = exposed(entity).entity
    picture_format(file)
    values, name = partition_fields(model, partition), logical_partition(model, partition)
    loads = open_backend(environment).entities.collection(model).shards(values)
    shards_picture.draw(file, f"{name}: {total(loads)} in {plural(len(loads), 'shard')}", loads)
    typer.echo(f"{file}: {total(loads)} in {plural(len(loads), 'shard')}")


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
    """Draw the order in which a listing returns items against their true order, coloured by shard.

    Reads what the listing reads.
    """
    model = exposed(entity).entity
    picture_format(file)
    if not definition(model).rule.fixed:
        raise CommandError(f"{entity} has random placement, so keys do not determine shards: draw another entity")
    left_out = LeftOut()
    listed, count = _listed(open_backend(environment), model, partition, Order(order), left_out, limit=limit, page=page)
    name = logical_partition(model, partition)
    if not listed:
        raise CommandError(f"{name} has no items: there is no order to draw")
    order_picture.draw(file, f"{name}: {order} over {shown(count)}", listed, shards=max(count, 1))
    late = order_picture.inversions(order_picture.ranks(listed))
    typer.echo(
        f"{file}: {plural(len(listed), 'item')}, {late:,} of them out of order: "
        "directly after one that should follow them"
    )
    left_out.end()


def _listed(
    backend: Backend, model: type[Entity], partition: str, order: Order, left_out: LeftOut, *, limit: int, page: int
) -> tuple[list[Listed], int]:
    entity, values = definition(model), partition_fields(model, partition)
    logical = logical_partition(model, partition)
    count, _, _ = partition_count(backend.topology, entity, logical)
    router = backend.entities.store.router
    keys = stored_partitions(entity, logical, router.topology.view(entity, logical))
    numbers = {key: number for number, key in enumerate(keys)}
    pages = backend.entities.collection(model).pages(values, order=order, limit=min(limit, page))
    items = islice(chain.from_iterable(map(left_out.items_of, pages)), limit)
    found = [entity.key_of(item) for item in items]
    return [Listed(key.sort, numbers[router.places(entity, key).old]) for key in found], count.count
