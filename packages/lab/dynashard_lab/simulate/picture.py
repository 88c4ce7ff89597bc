"""Draws the runs of a scenario over time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dynashard_lab.simulate.run import Point, Result
from dynashard_tools.plot.figure import figure_for

_HOUR: Final = 3_600.0
_ROWS: Final[tuple[tuple[str, Callable[[Point], float]], ...]] = (
    ("admitted a second", lambda point: point.admitted),
    ("throttled a second", lambda point: point.throttled),
    ("partitions", lambda point: point.partitions),
    ("write units a second", lambda point: point.write_units),
)

_SHARDS: Final[tuple[str, Callable[[Point], float]]] = ("shards", lambda point: point.shards)


def draw(path: Path, title: str, results: Mapping[str, Result]) -> None:
    """Draw throughput, throttles, partitions and capacity, with a line for each variant. As `figure_for`."""
    longest = max(result.seconds for result in results.values())
    unit, name = (
        (_HOUR, "hours") if longest > 4 * _HOUR else (60.0, "minutes") if longest > _HOUR / 6 else (1.0, "seconds")
    )
    with figure_for(path, title) as figure:
        sharded = any(point.shards for result in results.values() for point in result.points)
        rows = (*_ROWS[:-1], _SHARDS) if sharded else _ROWS
        all_axes = figure.subplots(len(rows), 1, sharex=True)
        for axes, (label, value) in zip(all_axes, rows, strict=True):
            for variant, result in results.items():
                times = [point.seconds / unit for point in result.points]
                axes.plot(times, [value(point) for point in result.points], label=variant, linewidth=1.1)
            axes.set_ylabel(label, fontsize=8)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("{x:,.0f}")
        all_axes[-1].set_xlabel(f"{name} of virtual time")
        if len(results) > 1:
            all_axes[0].legend(fontsize=7, loc="best")
