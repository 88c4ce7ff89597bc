"""Draws a plan: throughput and page cost by shard count, cost by mode, growth."""

from pathlib import Path
from typing import Any, Final

from dynashard_lab.plan.limits import PARTITION_WRITE_UNITS
from dynashard_lab.plan.listing import ORDERS, page_cost
from dynashard_lab.plan.partitions import expected_served
from dynashard_lab.plan.planner import Plan
from dynashard_lab.plan.shards import counts
from dynashard_lab.plan.units import Consistency
from dynashard_tools.plot.figure import figure_for

_COLORS: Final = ("#2f6f9f", "#c97b2f", "#4f8f4f")
_GREY: Final = "#888888"


def draw(path: Path, title: str, plan: Plan) -> None:
    """Draw the plan in four parts. As `figure_for`."""
    with figure_for(path, title) as figure:
        (throughput, pages), (cost, growth) = figure.subplots(2, 2)
        _throughput(throughput, plan)
        _page_costs(pages, plan)
        _costs(cost, plan)
        _growth(growth, plan)


def _throughput(axes: Any, plan: Plan) -> None:
    demand, partitions, shown = plan.shards.writes, plan.partitions.on_demand, counts(powers=True)
    served = [expected_served(count, partitions, demand / count) for count in shown]
    axes.plot(shown, [min(demand, count * PARTITION_WRITE_UNITS) for count in shown], color=_COLORS[0], label="at best")
    axes.plot(shown, served, color=_COLORS[1], label="expected before splits")
    axes.axhline(demand, color=_GREY, linestyle="--", linewidth=0.8)
    axes.set_ylabel("write units/s")
    _by_count(axes, plan, "writes of the hottest partition (dashed: demand)")


def _page_costs(axes: Any, plan: Plan) -> None:
    workload, shown = plan.workload, counts(powers=True)
    own = workload.consistency
    consistency = Consistency.STRONG if own is Consistency.TRANSACTIONAL else own
    for order, color in zip(ORDERS[:2], _COLORS, strict=False):
        units = [
            page_cost(
                order, items=workload.page, item_bytes=workload.item_bytes, shards=count, consistency=consistency
            ).read_units
            for count in shown
        ]
        axes.plot(shown, units, color=color, label=order)
    axes.set_yscale("log", base=2)
    axes.set_ylabel("read units")
    _by_count(axes, plan, f"a page of {workload.page}")


def _by_count(axes: Any, plan: Plan, title: str) -> None:
    axes.set_xscale("log", base=2)
    axes.axvline(plan.shards.count, color=_COLORS[2], linewidth=0.8, label=f"{plan.shards.count} shards")
    axes.set_xlabel("shards")
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=7)


def _costs(axes: Any, plan: Plan) -> None:
    names = ("on demand", "provisioned flat", "provisioned scaled")
    for place, (label, cost) in enumerate((("1 shard", plan.without), (f"{plan.shards.count}", plan.with_shards))):
        values = (cost.on_demand, cost.provisioned_flat, cost.provisioned_scaled)
        places = [number + (place - 0.5) * 0.4 for number in range(len(names))]
        axes.bar(places, values, width=0.4, color=_COLORS[place], label=label)
    axes.set_xticks(range(len(names)), names)
    axes.set_title(f"dollars a month, {plan.prices.region}, {plan.prices.as_of}", fontsize=9)
    axes.legend(title="shards", fontsize=7)


def _growth(axes: Any, plan: Plan) -> None:
    months = [month.month for month in plan.growth]
    axes.step(
        [*months, plan.workload.months],
        [month.count for month in plan.growth] + [plan.growth[-1].count],
        where="post",
        color=_COLORS[0],
    )
    axes.set_yscale("log", base=2)
    axes.set_xlabel("month")
    axes.set_title(f"shards at {plan.workload.growth:g}% growth a month", fontsize=9)
