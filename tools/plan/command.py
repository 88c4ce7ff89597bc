"""`dynashard plan`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from dynashard import definition
from dynashard.entity import EntityDefinition
from tools.entities import exposed, sharing
from tools.failure import CommandError
from tools.options import AnyEntity, AsJson, Environment
from tools.plan import inputs
from tools.plan.advice import advice
from tools.plan.declared import Given, Sample, declared_count, index_loads, rises
from tools.plan.picture import draw
from tools.plan.planner import Plan, make_plan
from tools.plan.prices import REFERENCE
from tools.plan.render import lines
from tools.plan.units import Consistency
from tools.plan.workload import IndexLoad, Workload
from tools.plot.figure import picture_format
from tools.topology.facts import EntityFacts

HELP: Final = """Plan shards, capacity and cost: `dynashard plan users --writes 5000 --partitions 200 --zipf 1`.

Rates are per second at the peak, for all logical partitions of the entity together. Without ENTITY, give --item-bytes. It changes nothing, and reads no table except shard counts with --live. docs/planning.md describes the arithmetic and its limits.
"""  # noqa: E501 - the terminal's width breaks the lines


def plan(
    entity: AnyEntity = None,
    *,
    item_bytes: Annotated[int | None, typer.Option(help="Stored bytes of an item, with names and keys.")] = None,
    items: Annotated[
        Path | None, typer.Option(help="CSV or JSON Lines of items: measures size, skew, indexes.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant of the rows of --items.")] = None,
    writes: Annotated[float, typer.Option(help="Writes of items a second.")] = 0,
    reads: Annotated[float, typer.Option(help="Reads of single items a second.")] = 0,
    lists: Annotated[float, typer.Option(help="Pages of listings a second.")] = 0,
    page: Annotated[int, typer.Option(help="Items a page.")] = 50,
    order: Annotated[Literal["round_robin", "ordered", "shard"], typer.Option(help="Listing order.")] = "round_robin",
    consistency: Annotated[Literal["eventual", "strong", "transactional"], typer.Option(help="Reads.")] = "eventual",
    transactional: Annotated[float, typer.Option(help="Part of the writes that are in transactions, 0 to 1.")] = 0,
    partitions: Annotated[int | None, typer.Option(help="Logical partitions with traffic; 1 if left out.")] = None,
    hottest: Annotated[float | None, typer.Option(help="Share of the hottest partition, 0 to 1.")] = None,
    zipf_exponent: Annotated[float | None, typer.Option("--zipf", help="Zipf exponent of the shares.")] = None,
    keys: Annotated[Path | None, typer.Option(help="File of partitions, one a line: measures the shares.")] = None,
    index: Annotated[list[str] | None, typer.Option(help="NAME=SHARE of an index's hottest partition.")] = None,
    index_changes: Annotated[
        list[str] | None, typer.Option(help="NAME=SHARE of the writes that change the index's key.")
    ] = None,
    index_bytes: Annotated[
        list[str] | None, typer.Option(help="NAME=BYTES of an entry of an index that does not store whole items.")
    ] = None,
    stored: Annotated[int, typer.Option(help="Items in the table.")] = 0,
    load: Annotated[int, typer.Option(help="Items to load once into one partition.")] = 0,
    growth: Annotated[float, typer.Option(help="Percent a month.")] = 0,
    months: Annotated[int, typer.Option(help="Months to look ahead.")] = 12,
    placement: Annotated[str | None, typer.Option(help="calculated, modulo or random.")] = None,
    shards: Annotated[int | None, typer.Option(help="Plan with this count, not the smallest that suffices.")] = None,
    sort_keys: Annotated[
        Literal["rising", "spread"] | None, typer.Option(help="Whether sort keys rise with time.")
    ] = None,
    fill: Annotated[float, typer.Option(help="Part of a partition's limits that a shard may use.")] = 0.7,
    mean: Annotated[float, typer.Option(help="Mean load as a part of the peak.")] = 0.5,
    utilization: Annotated[float, typer.Option(help="Target utilisation of provisioned capacity.")] = 0.7,
    region: Annotated[str, typer.Option(help="Region of the prices.")] = REFERENCE,
    prices: Annotated[Path | None, typer.Option(help="JSON file of prices instead of the included one.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="NAME=DOLLARS: one price, instead of the file's.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the plan into this file, .png or .svg.")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Read the shard counts in force: of the local stack, or of --env.")
    ] = False,
    environment: Environment = None,
    as_json: AsJson = False,
) -> None:
    """Plan shards, capacity and cost; `HELP` says more."""
    if plot is not None:
        picture_format(plot)
    found = None if entity is None else definition(exposed(entity).entity)
    if environment is not None and not live:
        raise CommandError("--env names the environment whose shard counts --live reads: add --live")
    with _wrong_values():
        counts = inputs.live_counts(found, environment) if live else None
        sample = inputs.sample(found, items, tenant)
        size, size_source = inputs.size(found, item_bytes, sample)
        skew = inputs.skew(partitions, hottest, zipf_exponent, keys, sample=sample, live=counts)
        given = Given(
            hottest=inputs.numbers(index or [], "--index", "by_email=0.2"),
            key_changes=inputs.numbers(index_changes or [], "--index-changes", "by_email=0.1"),
            entry_bytes=inputs.numbers(index_bytes or [], "--index-bytes", "by_email=200"),
            counts={name: each.count for name, each in counts.indexes.items()} if counts else None,
        )
        workload = Workload(
            item_bytes=size, skew=skew, writes=writes, reads=reads, lists=lists, page=page, order=order,
            consistency=Consistency(consistency), transactional=transactional, stored=stored, load=load,
            growth=growth, months=months, fill=fill, mean=mean, utilization=utilization,
            placement=placement or (found.rule.name if found else "calculated"),
            rising=sort_keys == "rising" if sort_keys else found is None or rises(found, found.sort),
            declared=_declared(found, counts),
            shards=shards,
            name="" if found is None else found.name,
            shares_with=() if found is None else sharing(found),
            indexes=_indexes(found, skew.hottest, sample, given),
        )  # fmt: skip
        made = make_plan(workload, inputs.read_prices(prices, region, price or []))
    _show(made, size_source, plot, as_json=as_json)


@contextmanager
def _wrong_values() -> Iterator[None]:
    """End the command with one line if a value is wrong."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error)) from error


def _show(made: Plan, size_source: str, plot: Path | None, *, as_json: bool) -> None:
    if plot is not None:
        title = f"{made.workload.name or 'plan'}: {made.shards.count} shards, {made.workload.writes:,g} writes/s"
        draw(plot, title, made)
    if as_json:
        typer.echo(json.dumps({**made.as_dict(), "item_size": size_source, "advice": advice(made)}))
        return
    for line in lines(made, size_source):
        typer.echo(line)


def _declared(found: EntityDefinition[Any] | None, counts: EntityFacts | None) -> int | None:
    if counts is not None:
        return counts.common.count
    return None if found is None else declared_count(found)


def _indexes(
    found: EntityDefinition[Any] | None, hottest: float, sample: Sample | None, given: Given
) -> tuple[IndexLoad, ...]:
    if found is not None:
        return index_loads(found, hottest, sample, given)
    if given.names:
        raise CommandError("--index needs ENTITY, which declares the indexes")
    return ()
