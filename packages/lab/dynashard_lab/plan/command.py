"""`dynashard plan`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from dynashard import definition
from dynashard.entity import EntityDefinition
from dynashard_lab.plan import inputs, options
from dynashard_lab.plan.advice import advice
from dynashard_lab.plan.declared import Given, Sample, declared_count, derived, index_loads, rises, timed
from dynashard_lab.plan.picture import draw
from dynashard_lab.plan.planner import Plan, make_plan
from dynashard_lab.plan.prices import REFERENCE
from dynashard_lab.plan.render import lines
from dynashard_lab.plan.units import Consistency
from dynashard_lab.plan.workload import IndexLoad, Workload
from dynashard_tools.entities import exposed, sharing
from dynashard_tools.failure import CommandError
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.plot.figure import picture_format
from dynashard_tools.topology.facts import EntityFacts


def plan(
    entity: options.Entity = None,
    *,
    item_bytes: options.ItemBytes = None,
    items: options.Items = None,
    tenant: options.Tenant = None,
    writes: options.Writes = 0,
    reads: options.Reads = 0,
    lists: options.Lists = 0,
    page: options.Page = 50,
    order: options.Order = "round_robin",
    consistency: options.Consistency = "eventual",
    transactional: options.Transactional = 0,
    partitions: options.Partitions = None,
    hottest: options.Hottest = None,
    zipf_exponent: options.ZipfExponent = None,
    keys: options.Keys = None,
    index: options.IndexShares = None,
    index_changes: options.IndexChanges = None,
    index_bytes: options.IndexBytes = None,
    copies: options.Copies = 1,
    stored: options.Stored = 0,
    load: options.Load = 0,
    growth: options.Growth = 0,
    months: options.Months = 12,
    placement: options.Placement = None,
    shards: options.ShardCount = None,
    sort_keys: options.SortKeys = None,
    fill: options.Fill = 0.7,
    mean: options.Mean = 0.5,
    utilization: options.Utilization = 0.7,
    region: options.Region = REFERENCE,
    prices: options.PriceFile = None,
    price: options.SinglePrices = None,
    plot: options.Plot = None,
    live: options.Live = False,
    environment: Environment = None,
    as_json: AsJson = False,
) -> None:
    """Plan shards, capacity and cost: `dynashard plan users --writes 5000 --partitions 200 --zipf 1`.

    Rates are per second at the peak, for all logical partitions of the entity together. Without ENTITY, give
    `--item-bytes`. It changes nothing, and reads no table except shard counts with `--live`. docs/planning.md describes
    the arithmetic and its limits.
    """
    found = _entity(entity, environment, plot, live=live)
    with _wrong_values():
        counts = inputs.live_counts(found, environment) if live else None
        sample = inputs.sample(found, items, tenant)
        size, size_source = inputs.size(found, item_bytes, sample)
        skew = inputs.skew(partitions, hottest, zipf_exponent, keys, sample=sample, live=counts)
        indexes = _indexes(found, skew.hottest, sample, inputs.given(index, index_changes, index_bytes, counts))
        workload = Workload(
            item_bytes=size, skew=skew, writes=writes, reads=reads, lists=lists, page=page, order=order,
            consistency=Consistency(consistency), transactional=transactional, stored=stored, load=load,
            growth=growth, months=months, fill=fill, mean=mean, utilization=utilization, shards=shards,
            placement=placement or (found.rule.name if found else "calculated"), rising=_rising(found, sort_keys),
            timed=timed(found) if found else None,
            declared=_declared(found, counts), name=found.name if found else "",
            shares_with=sharing(found) if found else (), indexes=indexes,
            derived=derived(found, copies) if found else (), queued=found is not None and exposed(found.name).queued,
        )  # fmt: skip
        made = make_plan(workload, inputs.read_prices(prices, region, price or []))
    _show(made, size_source, plot, as_json=as_json)


def _entity(
    name: str | None, environment: str | None, plot: Path | None, *, live: bool
) -> EntityDefinition[Any] | None:
    """Return the entity of a plan; raise `CommandError` if the options do not fit together."""
    if plot is not None:
        picture_format(plot)
    found = None if name is None else definition(exposed(name).entity)
    if environment is not None and not live:
        raise CommandError("--env names the environment whose shard counts --live reads: add --live")
    return found


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


def _rising(found: EntityDefinition[Any] | None, given: str | None) -> bool:
    if given is not None:
        return given == "rising"
    return found is None or rises(found, found.sort)


def _indexes(
    found: EntityDefinition[Any] | None, hottest: float, sample: Sample | None, given: Given
) -> tuple[IndexLoad, ...]:
    if found is not None:
        return index_loads(found, hottest, sample, given)
    if given.names:
        raise CommandError("--index needs ENTITY, which declares the indexes")
    return ()
