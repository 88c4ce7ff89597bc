"""Draws how the items of a logical partition are spread over its shards."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dynashard.reads import ShardLoad
from dynashard_tools.counting import plural
from dynashard_tools.plot.figure import figure_for

_COLORS: Final = ("#2f6f9f", "#c97b2f")


def draw(path: Path, title: str, shards: Sequence[ShardLoad]) -> None:
    """Draw items and bytes of each shard as two rows of bars. As `figure_for`."""
    with figure_for(path, title) as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        _bars(above, "items", [shard.items for shard in shards], _COLORS[0])
        _bars(below, "bytes", [shard.bytes for shard in shards], _COLORS[1])
        below.set_xlabel("shard")


def total(shards: Sequence[ShardLoad]) -> str:
    """Describe what shards hold together."""
    items, size = sum(shard.items for shard in shards), sum(shard.bytes for shard in shards)
    return f"{plural(items, 'item')}, {plural(size, 'byte')}"


def _bars(axes: Any, what: str, values: Sequence[int], color: str) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter  # noqa: PLC0415

    mean = sum(values) / len(values) if values else 0.0
    axes.bar(range(len(values)), values, width=0.9, color=color)
    axes.axhline(mean, color="#555555", linewidth=0.8, linestyle="--")
    axes.set_title(f"dashed: mean of {mean:,.0f} {what}", loc="right", fontsize=8)
    axes.set_ylabel(what)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.margins(x=0.01)
