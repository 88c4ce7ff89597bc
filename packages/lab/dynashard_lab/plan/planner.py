"""Makes a plan of a workload: units, partitions, shard counts, listings, load time, cost, growth."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from dynashard.placement import PLACEMENTS
from dynashard_lab.plan.cost import Load, MonthlyCost, monthly_cost, provisioned_units, stored_bytes
from dynashard_lab.plan.following import Following, following
from dynashard_lab.plan.limits import NEW_TABLE_READ_UNITS, NEW_TABLE_WRITE_UNITS, PARTITION_WRITE_UNITS
from dynashard_lab.plan.listing import ORDERS, PageCost, page_cost
from dynashard_lab.plan.loading import LoadTime, Target, load_time
from dynashard_lab.plan.partitions import (
    chance_shared,
    doublings,
    even_share,
    expected_served,
    on_demand_partitions,
    provisioned_partitions,
    ramp_seconds,
)
from dynashard_lab.plan.prices import Prices
from dynashard_lab.plan.shards import ShardCount, shard_count
from dynashard_lab.plan.units import Consistency, index_write_units, read_units, write_units
from dynashard_lab.plan.workload import IndexLoad, Workload

TABLE: Final = "the table"


@dataclass(frozen=True, slots=True)
class OperationUnits:
    """Mean units of one operation. `write` is the table's alone, `indexes` what a write costs in each index."""

    write: float
    indexes: dict[str, float]
    read: float

    @property
    def write_with_indexes(self) -> float:
        """The units of a write in the table and all indexes."""
        return self.write + sum(self.indexes.values())


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The shards of an index. `throttles` is true if its declared count throttles writes of the table."""

    load: IndexLoad
    count: ShardCount
    throttles: bool


@dataclass(frozen=True, slots=True)
class TablePartitions:
    """Physical partitions of the table at the peak, and how a new on-demand table gets there.

    Attributes:
        on_demand, provisioned: how many each mode has.
        reads, writes: the provisioned units of the table.
        reads_each, writes_each: those of one partition, if they are divided evenly.
        doublings: how often a new on-demand table must double.
        ramp_seconds: how long that should take.
    """

    on_demand: int
    provisioned: int
    reads: int
    writes: int
    reads_each: float
    writes_each: float
    bytes: int
    doublings: int
    ramp_seconds: int


@dataclass(frozen=True, slots=True)
class Collisions:
    """The chance that two hot keys are on one physical partition, without shards and with them.

    A stored partition key is hot if its writes are more than half of what a partition serves, so that two of them are
    too much for one.
    """

    partitions: int
    hot_without: int
    chance_without: float
    hot_with: int
    chance_with: float


@dataclass(frozen=True, slots=True)
class Month:
    """The plan in a later month."""

    month: int
    factor: float
    count: int
    dollars: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan.

    Attributes:
        unserved: the part of the writes that one shard a logical partition cannot serve, until DynamoDB has split it.
        served: the part of the hottest partition's writes that its shards are expected to serve before DynamoDB has
            split physical partitions on which several of them are.
        without, with_shards: the monthly cost with one shard a logical partition, and with `shards.count`.
        without_load, with_load: the units a second at the peak, indexes included.
        following: what writes cause besides; None if nothing.
        growth: this month, each month in which the count changes, and the last.
    """

    workload: Workload
    prices: Prices
    units: OperationUnits
    shards: ShardCount
    unserved: float
    served: float
    indexes: tuple[IndexPlan, ...]
    partitions: TablePartitions
    collisions: Collisions
    pages: tuple[PageCost, ...]
    single_pages: tuple[PageCost, ...]
    load: LoadTime | None
    without: MonthlyCost
    with_shards: MonthlyCost
    without_load: Load
    with_load: Load
    following: Following | None
    growth: tuple[Month, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        document = asdict(self)
        document["workload"]["skew"].pop("shares")
        document["workload"]["skew"]["hottest"] = self.workload.skew.hottest
        document["units"]["write_with_indexes"] = self.units.write_with_indexes
        return document


def make_plan(workload: Workload, prices: Prices) -> Plan:
    """Return the plan of a workload."""
    units = operation_units(workload)
    shards = _table_shards(workload, units)
    with_load, without_load = _load(workload, units, shards.count), _load(workload, units, 1)
    held = _stored(workload)
    with_shards = monthly_cost(with_load, held, prices, utilization=workload.utilization)
    return Plan(
        workload=workload,
        prices=prices,
        units=units,
        shards=shards,
        unserved=_unserved(workload, units),
        served=_served(workload, units, shards),
        indexes=tuple(_index_plan(workload, units, index) for index in workload.indexes),
        partitions=_partitions(workload, units, shards.count),
        collisions=_collisions(workload, units, shards.count),
        pages=_pages(workload, shards.count),
        single_pages=_pages(workload, 1),
        load=_load_time(workload, units, shards.count) if workload.load else None,
        without=monthly_cost(without_load, held, prices, utilization=workload.utilization),
        with_shards=with_shards,
        without_load=without_load,
        with_load=with_load,
        following=following(
            workload.derived,
            writes=workload.writes * workload.mean,
            queued=workload.queued,
            table=with_shards.on_demand,
            prices=prices,
        ),
        growth=_growth(workload, prices),
    )


def operation_units(workload: Workload) -> OperationUnits:
    """Return the mean units of operations. A transaction doubles a write in the table; indexes follow later."""
    write = write_units(workload.item_bytes) * (1 - workload.transactional)
    write += write_units(workload.item_bytes, transactional=True) * workload.transactional
    indexes = {index.name: _index_units(index, workload.item_bytes) for index in workload.indexes}
    return OperationUnits(write, indexes, read_units(workload.item_bytes, workload.consistency))


def _index_units(index: IndexLoad, item_bytes: int) -> float:
    size = index.entry_bytes or item_bytes
    same = index_write_units(size, before=size)
    moved = index_write_units(size, before=size, key_changes=True)
    return index.share * (same * (1 - index.key_changes) + moved * index.key_changes)


def _table_shards(workload: Workload, units: OperationUnits) -> ShardCount:
    hottest, placement = workload.skew.hottest, PLACEMENTS[workload.placement]
    gets, lists = workload.reads * units.read * hottest, workload.lists * hottest

    def reads_per_shard(count: int) -> float:
        # With random placement a read by key looks into each shard.
        own = gets / count if placement.fixed else gets
        page = _page(workload, workload.order, count)
        return own + lists * page.shard_units * page.shards_read / count

    writes = workload.writes * units.write * hottest
    found = shard_count(
        writes, reads_per_shard, fill=workload.fill, powers=placement.powers_of_two, rising=workload.rising
    )
    if workload.shards is None:
        return found
    return replace(found, count=workload.shards, reason=f"given; {found.count} are enough: {found.reason}")


def _index_plan(workload: Workload, units: OperationUnits, index: IndexLoad) -> IndexPlan:
    writes = workload.writes * units.indexes[index.name] * index.hottest
    count = shard_count(writes, lambda _: 0.0, fill=workload.fill, powers=True, rising=index.rising)
    return IndexPlan(index, count, writes > (index.declared or 1) * PARTITION_WRITE_UNITS)


def _load_time(workload: Workload, units: OperationUnits, count: int) -> LoadTime:
    table = Target(TABLE, units.write, count)
    indexes = [
        # The items go into one logical partition: of an index, that has at most the whole of it.
        Target(index.name, units.indexes[index.name] * min(1.0, index.hottest / workload.skew.hottest), shards)
        for index in workload.indexes
        for shards in (index.declared or 1,)
    ]
    return load_time(workload.load, [table, *indexes])


def _page(workload: Workload, order: str, count: int) -> PageCost:
    # Listings are never transactional; such a workload has none, and the table of orders shows consistent ones.
    own = workload.consistency
    consistency = Consistency.STRONG if own is Consistency.TRANSACTIONAL else own
    return page_cost(order, items=workload.page, item_bytes=workload.item_bytes, shards=count, consistency=consistency)


def _pages(workload: Workload, count: int) -> tuple[PageCost, ...]:
    return tuple(_page(workload, order, count) for order in ORDERS)


def _load(workload: Workload, units: OperationUnits, count: int) -> Load:
    fixed = PLACEMENTS[workload.placement].fixed
    reads = workload.reads * units.read * (1 if fixed else count)
    reads += workload.lists * _page(workload, workload.order, count).read_units
    return Load(workload.writes * units.write_with_indexes, reads, workload.mean)


def _stored(workload: Workload) -> float:
    entries = sum(
        index.share * stored_bytes(workload.stored, index.entry_bytes or workload.item_bytes)
        for index in workload.indexes
    )
    return stored_bytes(workload.stored, workload.item_bytes) + entries


def _unserved(workload: Workload, units: OperationUnits) -> float:
    total = workload.writes * units.write
    if not total:
        return 0.0
    number, mean = workload.skew.rest
    unserved = sum(max(0.0, total * share - PARTITION_WRITE_UNITS) for share in workload.skew.shares)
    return (unserved + number * max(0.0, total * mean - PARTITION_WRITE_UNITS)) / total


def _served(workload: Workload, units: OperationUnits, shards: ShardCount) -> float:
    if not shards.writes:
        return 1.0
    partitions = _partitions(workload, units, shards.count).on_demand
    return expected_served(shards.count, partitions, shards.writes / shards.count) / shards.writes


def _partitions(workload: Workload, units: OperationUnits, count: int) -> TablePartitions:
    writes, reads = workload.writes * units.write, _load(workload, units, count).read_units
    size = workload.stored * workload.item_bytes
    provisioned = [provisioned_units(units, workload.utilization) for units in (reads, writes)]
    number = provisioned_partitions(provisioned[0], provisioned[1], size)
    steps = doublings(writes, NEW_TABLE_WRITE_UNITS), doublings(reads, NEW_TABLE_READ_UNITS)
    return TablePartitions(
        on_demand=on_demand_partitions(reads, writes, size),
        provisioned=number,
        reads=provisioned[0],
        writes=provisioned[1],
        reads_each=even_share(provisioned[0], number),
        writes_each=even_share(provisioned[1], number),
        bytes=size,
        doublings=max(steps),
        ramp_seconds=max(ramp_seconds(writes, NEW_TABLE_WRITE_UNITS), ramp_seconds(reads, NEW_TABLE_READ_UNITS)),
    )


def _collisions(workload: Workload, units: OperationUnits, count: int) -> Collisions:
    total = workload.writes * units.write
    partitions = _partitions(workload, units, count).on_demand
    half = PARTITION_WRITE_UNITS / 2 / total if total else 1.0
    without, with_shards = workload.skew.above(half), workload.skew.above(half * count) * count
    return Collisions(
        partitions, without, chance_shared(without, partitions), with_shards, chance_shared(with_shards, partitions)
    )


def _growth(workload: Workload, prices: Prices) -> tuple[Month, ...]:
    months = [_month(workload, prices, number) for number in range(workload.months + 1 if workload.growth else 1)]
    pairs = zip(months[1:], months, strict=False)
    changed = [after for after, before in pairs if after.count != before.count]
    last = [months[-1]] if months[-1] not in (months[0], *changed) else []
    return (months[0], *changed, *last)


def _month(workload: Workload, prices: Prices, number: int) -> Month:
    factor = (1 + workload.growth / 100) ** number
    try:
        later = replace_rates(workload, factor)
    except ValueError as error:
        raise ValueError(f"in month {number}: {error}. Lower --growth or --months") from error
    units = operation_units(later)
    count = _table_shards(later, units).count
    load, held = _load(later, units, count), _stored(later)
    cost = monthly_cost(load, held, prices, utilization=later.utilization)
    return Month(number, factor, count, min(cost.on_demand, cost.provisioned_flat) + cost.storage)


def replace_rates(workload: Workload, factor: float) -> Workload:
    """Return the workload with all rates and the stored items times a factor.

    Raises:
        ValueError: a rate is then out of its bounds.
    """
    return replace(
        workload,
        writes=workload.writes * factor,
        reads=workload.reads * factor,
        lists=workload.lists * factor,
        stored=round(workload.stored * factor),
    )
