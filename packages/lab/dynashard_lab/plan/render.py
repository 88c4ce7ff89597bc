"""A plan as text."""

from collections.abc import Iterator
from typing import Final

from dynashard_lab.plan.advice import advice
from dynashard_lab.plan.cost import MonthlyCost
from dynashard_lab.plan.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from dynashard_lab.plan.loading import duration
from dynashard_lab.plan.planner import Plan
from dynashard_lab.plan.units import Consistency

_LABEL: Final = 24
_WHOLE: Final = 0.995
"""A part that is printed as 100%."""


def lines(plan: Plan, size_source: str) -> list[str]:
    """Return the plan as lines for people. `size_source` is where the item size comes from."""
    parts = (
        _inputs(plan, size_source),
        _units(plan),
        _shards(plan),
        _indexes(plan),
        _partitions(plan),
        _pages(plan),
        _load(plan),
        _cost(plan),
        _growth(plan),
        _advice(plan),
    )
    return [line for part in parts for line in part]


def _row(label: str, text: str) -> str:
    return f"{label:<{_LABEL - 1}} {text}".rstrip()


def _inputs(plan: Plan, size_source: str) -> Iterator[str]:
    workload = plan.workload
    yield _row("item", f"{workload.item_bytes:,} bytes, {size_source}")
    rates = f"{workload.writes:,g} writes, {workload.reads:,g} reads, {workload.lists:,g} pages of {workload.page}"
    yield _row("peak load a second", f"{rates} ({workload.order}); reads {workload.consistency.value}")
    skew = workload.skew
    yield _row("logical partitions", f"{skew.partitions:,}, {skew.source}: the hottest has {skew.hottest:.3%}")
    yield _row("sort keys", "rise with time" if workload.rising else "do not rise with time")


def _units(plan: Plan) -> Iterator[str]:
    units = plan.units
    indexes = "".join(f" + {each:g} in {name}" for name, each in units.indexes.items())
    together = f" = {units.write_with_indexes:g}" if units.indexes else ""
    yield _row("write units a write", f"{units.write:g}{indexes}{together}")
    yield _row("read units a read", f"{units.read:g}")


def _shards(plan: Plan) -> Iterator[str]:
    shards = plan.shards
    yield _row("shards", f"{shards.count} ({shards.need.value}): {shards.reason}")
    if plan.unserved:
        yield _row("with one shard", f"{plan.unserved:.1%} of the writes are throttled until DynamoDB splits the range")
    if plan.served < _WHOLE:
        where = f"on {plan.partitions.on_demand} physical partitions, some of which hold several shards"
        yield _row("served at once", f"{plan.served:.0%} of the hottest partition's writes are expected, {where}")


def _indexes(plan: Plan) -> Iterator[str]:
    for index in plan.indexes:
        declared = "none" if index.load.declared is None else index.load.declared
        assumed = f" (assumed: {index.load.assumed})" if index.load.assumed else ""
        text = f"{index.count.count}, declared {declared}: {index.count.writes:,.0f} units/s in the hottest{assumed}"
        yield _row(f"shards of {index.load.name}", text)


def _partitions(plan: Plan) -> Iterator[str]:
    partitions, collisions = plan.partitions, plan.collisions
    yield _row("physical partitions", f"{partitions.on_demand} on demand, {partitions.provisioned} provisioned")
    kinds = (
        ("read", partitions.reads_each, partitions.reads, PARTITION_READ_UNITS),
        ("write", partitions.writes_each, partitions.writes, PARTITION_WRITE_UNITS),
    )
    used = [kind for kind in kinds if kind[2]]
    if used and partitions.provisioned > 1:
        each = " and ".join(f"{own:,g} of {total:,} {name}" for name, own, total, _ in used)
        most = " and ".join(f"{limit:,} {name}" for name, _, _, limit in used)
        part = 1 / partitions.provisioned
        yield _row(
            f"one of {partitions.provisioned} provisioned",
            f"{each} units if they are divided evenly: one hot key uses {part:.1%} of the table's capacity, and leaves "
            f"{1 - part:.1%} unused. Adaptive capacity lends it more, up to {most} units",
        )
    if partitions.doublings:
        text = f"{partitions.doublings}, which take {duration(partitions.ramp_seconds)}"
        yield _row("doublings when new", text)
    if collisions.hot_without or collisions.hot_with:
        yield _row(
            "two hot keys on one",
            f"chance {collisions.chance_without:.1%} for {collisions.hot_without} without shards, "
            f"{collisions.chance_with:.1%} for {collisions.hot_with} with",
        )


def _pages(plan: Plan) -> Iterator[str]:
    for page, single in zip(plan.pages, plan.single_pages, strict=True):
        yield _row(
            f"page, {page.order}",
            f"read units {page.read_units:g}, Queries {page.queries}; from one shard {single.read_units:g} read units",
        )


def _load(plan: Plan) -> Iterator[str]:
    load = plan.load
    if load is not None:
        yield _row(
            f"load of {load.items:,}",
            f"{duration(load.naive)} with one shard; with {plan.shards.count} {duration(load.cold)} into a new table, "
            f"{duration(load.warm)} into one pre-warmed to {load.warm_units:,} units (slowest: {load.bottleneck})",
        )


def _cost(plan: Plan) -> Iterator[str]:
    prices = plan.prices
    estimated = f", {', '.join(prices.estimated)} estimated" if prices.estimated else ""
    yield _row("dollars a month", f"{prices.region}, prices of {prices.as_of}{estimated}")
    yield _row("  with one shard", _dollars(plan.without))
    if plan.shards.count > 1:
        yield _row(f"  with {plan.shards.count} shards", _dollars(plan.with_shards))
    if plan.following is not None:
        for part in plan.following.parts:
            units = f"{_between(*part.write_units)} write units a write, " if any(part.write_units) else ""
            yield _row(f"  {part.name}", f"{units}{_between(*part.dollars, money=True)} on demand")
        yield _row("  all of it", f"{_between(*plan.following.together, money=True)} on demand, without storage")
    yield _row("  storage", f"{plan.with_shards.storage:,.2f}")


def _dollars(cost: MonthlyCost) -> str:
    return (
        f"{cost.on_demand:,.2f} on demand; provisioned {cost.provisioned_flat:,.2f} flat, "
        f"{cost.provisioned_scaled:,.2f} if it follows the load"
    )


def _between(low: float, high: float, *, money: bool = False) -> str:
    first, last = (f"{each:,.2f}" if money else f"{each:,.3g}" for each in (low, high))
    return first if first == last else f"{first} to {last}"


def _growth(plan: Plan) -> Iterator[str]:
    if len(plan.growth) > 1:
        yield _row("growth", f"{plan.workload.growth:g}% a month; dollars in the cheaper mode, with storage")
        for month in plan.growth:
            text = f"{month.factor:.2f} times the load: shards {month.count}, dollars {month.dollars:,.2f}"
            yield _row(f"  month {month.month}", text)


def _advice(plan: Plan) -> Iterator[str]:
    yield "advice"
    for text in advice(plan):
        yield f"- {text}"
    if plan.workload.consistency is Consistency.TRANSACTIONAL:
        yield "- The pages above are strongly consistent, because a Query cannot be transactional."
