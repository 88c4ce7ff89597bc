"""What a plan advises: what to change in the declaration, the settings or the use of listings."""

from collections.abc import Iterator
from math import ceil
from typing import Final

from dynashard.placement import PLACEMENTS
from dynashard.schema import MAX_SHARDS
from dynashard_lab.plan.limits import (
    GIGABYTE,
    NEW_TABLE_READ_UNITS,
    NEW_TABLE_WRITE_UNITS,
    PARTITION_BYTES,
    PARTITION_WRITE_UNITS,
    TABLE_QUOTA_UNITS,
)
from dynashard_lab.plan.loading import duration, rate, seconds_at
from dynashard_lab.plan.planner import TABLE, IndexPlan, Plan
from dynashard_lab.plan.shards import Need
from dynashard_lab.plan.workload import Workload

LONG_SECONDS: Final = 3600
"""A load that takes longer is worth more shards than the rates need."""
_WORTH_DOUBLING: Final = 0.9
"""A doubling of the shards that leaves more than this part of a load's time is not worth it."""
_DEAR: Final = 4
"""An ordered page that costs this many times as much as from one shard is worth a word."""

_EPOCH_SECONDS: Final = 70
"""How long a count of epochs takes to grow, with the default settings. Source: docs/growth.md."""
_OLD_ITEMS: Final = (
    "It does not relieve updates and imports of old items, which stay on the shards of their time: begin with as many "
    "as those need."
)


def advice(plan: Plan) -> list[str]:
    """Return the advice, one sentence or two each, the most important first."""
    return [
        *_of_shards(plan),
        *_of_indexes(plan),
        *_of_the_load(plan),
        *_of_the_table(plan),
        *_of_listings(plan),
        *_of_cost(plan),
    ]


def _of_shards(plan: Plan) -> Iterator[str]:
    shards, declared = plan.shards, plan.workload.declared
    if plan.workload.shards is not None:
        return
    if shards.need is Need.UNREACHABLE:
        yield (
            "No shard count is enough for the hottest logical partition. Add a field to the partition template of Key, "
            "such as a day or a group; for reads, also Shards(..., read_replicas=1)."
        )
        return
    if shards.need is Need.NONE:
        yield _none_needed(plan, declared)
        return
    yield _needed(plan)
    if plan.workload.shares_with:
        others = ", ".join(plan.workload.shares_with)
        yield (
            f"{plan.workload.name} shares its logical partitions with {others}: they need the same Shards, and the "
            "rates must include theirs."
        )
    if shards.need is Need.OPTIONAL:
        yield (
            f"{_spread(plan)}, so DynamoDB splits a hot range by itself within minutes to hours. If the load "
            f"grows slowly, no shards are needed; Shards(start=1, max={_ceiling(plan)}) grows when throttles last."
        )
    else:
        yield "Sort keys rise with time, and DynamoDB does not split a range for such keys: it cannot help by itself."
    yield from _of_epochs(plan.workload)


def _of_epochs(workload: Workload) -> Iterator[str]:
    """Advise the placement whose counts grow without moving, where keys carry their time; and say what it leaves."""
    if workload.placement == "epochs":
        yield f"A count of epochs grows within {_EPOCH_SECONDS} seconds, and no item moves. {_OLD_ITEMS}"
        return
    if not workload.rising or workload.timed is False or workload.placement == "modulo":
        return
    if workload.placement == "random":
        yield (
            'For keys that begin with their time, placement="epochs" grows as fast, and finds an item by its key in '
            "one shard. Items of random placement cannot be placed by epochs later: copy them to a new entity."
        )
        return
    declare = 'declare Shards(..., placement="epochs")'
    begins = (
        f"Sort keys begin with their time: {declare}, unless callers choose ids without one"
        if workload.timed
        else f"If sort keys begin with their time, {declare}"
    )
    yield (
        f"{begins}. The count then grows within {_EPOCH_SECONDS} seconds, no item moves, and stored items stay where "
        f"they are. {_OLD_ITEMS}"
    )


def _spread(plan: Plan) -> str:
    return "Only reads need shards" if plan.workload.rising else "Sort keys do not rise"


def _none_needed(plan: Plan, declared: int | None) -> str:
    held = plan.partitions.bytes * plan.workload.skew.hottest
    text = "No shards are needed for these rates: one physical partition serves those of the hottest logical partition."
    if held > PARTITION_BYTES:
        split = ceil(held / PARTITION_BYTES)
        text += f" Its {held / GIGABYTE:,.0f} GB take {split} of them; DynamoDB divides it by the sort key."
    if _for_a_long_load(plan) is not None:
        # That advice names the count to declare.
        return text
    if declared and declared > 1:
        return f"{text} The declared Shards({declared}) could be Shards(start=1, max={declared})."
    wanted = "Shards(start=1)"
    if plan.workload.rising and plan.workload.timed and plan.workload.placement in {"calculated", "epochs"}:
        wanted = 'Shards(start=1, placement="epochs")'
    return f"{text} Declare {wanted} if it may become hot: the count then grows by itself."


def _needed(plan: Plan) -> str:
    workload, count = plan.workload, plan.shards.count
    where = f" on {workload.name}" if workload.name else ""
    if not PLACEMENTS[workload.placement].powers_of_two:
        return _modulo_needed(plan, where)
    wanted = f"Shards({count}, max={_ceiling(plan)})"
    if workload.placement != "calculated":
        wanted = f'Shards({count}, max={_ceiling(plan)}, placement="{workload.placement}")'
    declared = workload.declared
    if declared == count:
        return f"Keep Shards({declared}){where}: it is the smallest count that suffices."
    if declared and declared > count:
        return f"Shards({declared}){where} is enough; {count} would do, with cheaper ordered pages."
    resize = " Stored data changes its count by `dynashard reshard start`, not by the declaration." if declared else ""
    return f"Declare shards={wanted}{where}.{resize}"


def _modulo_needed(plan: Plan, where: str) -> str:
    """Advise on counts that never change, so that they are planned for the end of the months."""
    declared, last = plan.workload.declared, max(month.count for month in plan.growth)
    if declared and declared >= last:
        return f"Keep Shards({declared}){where}: {last} suffice through the months planned."
    text = f'Declare shards=Shards({last}, placement="modulo"){where}, enough for the months planned'
    if declared:
        return f"{text}. Modulo counts never change, so stored items have to be copied into a new table."
    return f"{text}: modulo counts never change. Calculated placement can grow."


def _ceiling(plan: Plan) -> int:
    """The upper bound for automatic growth: twice what the months planned need."""
    most = max(month.count for month in plan.growth)
    return min(MAX_SHARDS, 2 << (most - 1).bit_length())


def _of_indexes(plan: Plan) -> Iterator[str]:
    for index in plan.indexes:
        # The count of a read replica follows the table's.
        if index.count.count > (index.load.declared or 1) and not index.load.replica:
            yield _of_index(index)


def _of_index(index: IndexPlan) -> str:
    count, load = index.count.count, index.load
    held = "no shards" if load.declared is None else f"Shards({load.declared})"
    effect = "throttles writes of the table" if index.throttles else "is above the planned fill"
    if index.count.need is Need.OPTIONAL:
        effect += " until DynamoDB has split it, because its sort keys do not rise"
    assumed = f" This assumes that {load.assumed}; give --index {load.name}=SHARE if you know better." * bool(
        load.assumed
    )
    return (
        f"Give the index {load.name} shards=Shards({count}): it has {held}, and its hottest partition with "
        f"{index.count.writes:,.0f} write units/s {effect}.{assumed}"
    )


def _of_the_load(plan: Plan) -> Iterator[str]:
    yield from _of_a_long_load(plan)
    if plan.load is not None and plan.shards.count > 1 and plan.load.bottleneck != TABLE:
        yield (
            f"The index {plan.load.bottleneck} limits the load: give it as many shards as the table, "
            f"shards=Shards({plan.shards.count})."
        )


def _of_a_long_load(plan: Plan) -> Iterator[str]:
    load, better = plan.load, _for_a_long_load(plan)
    if load is None or better is None:
        return
    count, seconds = better
    now = "one shard" if plan.shards.count == 1 else f"{plan.shards.count} shards"
    yield (
        f"The load takes {duration(load.warm)} with {now}: one stored partition key takes at most "
        f"{PARTITION_WRITE_UNITS:,} write units/s. For the load, begin with Shards({count}) in a pre-warmed table, "
        f"with as many shards in its indexes, and it takes {duration(seconds)}."
    )


def _for_a_long_load(plan: Plan) -> tuple[int, float] | None:
    """Return more shards than the rates need, and the seconds of the load with them; None if more are not worth it.

    Shards beyond the physical partitions of the table make only listings dearer.
    """
    load, workload = plan.load, plan.workload
    if load is None or workload.shards is not None or not PLACEMENTS[workload.placement].powers_of_two:
        return None
    count, seconds = plan.shards.count, load.warm
    while seconds > LONG_SECONDS and count < MAX_SHARDS:
        faster = seconds_at(load.items * plan.units.write, rate(2 * count, load.warm_units))
        if faster > _WORTH_DOUBLING * seconds:
            break
        count, seconds = 2 * count, faster
    return None if count == plan.shards.count else (count, seconds)


def _of_the_table(plan: Plan) -> Iterator[str]:
    writes, reads = plan.workload.writes * plan.units.write, plan.with_load.read_units
    if plan.partitions.doublings:
        yield (
            f"A new on-demand table serves {NEW_TABLE_WRITE_UNITS:,} writes and {NEW_TABLE_READ_UNITS:,} reads/s: "
            f"pre-warm it to {ceil(writes):,} write and {ceil(reads):,} read units, or let the traffic grow over "
            f"{plan.partitions.ramp_seconds // 60} minutes."
        )
    if max(writes, reads) > TABLE_QUOTA_UNITS:
        yield (
            f"Request a higher quota: {TABLE_QUOTA_UNITS:,} units/s a table is the default, for reads and for writes. "
            "`make preflight` shows yours."
        )
    collisions = plan.collisions
    if collisions.hot_without > 1 and collisions.chance_without > collisions.chance_with:
        yield (
            f"{collisions.hot_without} logical partitions are hot enough that two of them overload a physical "
            f"partition; without shards two share one with a chance of {collisions.chance_without:.0%}."
        )


def _of_listings(plan: Plan) -> Iterator[str]:
    ordered, single = plan.pages[1].read_units, plan.single_pages[1].read_units
    if plan.shards.count > 1 and ordered >= _DEAR * single:
        yield (
            f"An ordered page of {plan.workload.page} costs {ordered:g} read units over {plan.shards.count} shards, "
            f"and {single:g} from one: list in round_robin order where the order does not matter, or in larger pages."
        )


def _of_cost(plan: Plan) -> Iterator[str]:
    cost = plan.with_shards
    if cost.provisioned_flat or cost.on_demand:
        settings = "" if cost.cheapest == "on demand" else " Set table.mode to provisioned (docs/capacity.md)."
        yield (
            f"At a mean load of {plan.workload.mean:.0%} of the peak, {cost.cheapest} is cheaper; on demand is below a "
            f"mean of {cost.break_even:.0%}.{settings}"
        )
