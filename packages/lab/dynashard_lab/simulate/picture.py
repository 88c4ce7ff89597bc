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
    ("shards", lambda point: point.shards),
    ("partitions", lambda point: point.partitions),
    ("write units a second", lambda point: point.write_units),
)
_ALWAYS: Final = _ROWS[:2]
_DASHES: Final = ("-", "--", "-.", ":")


def draw(path: Path, title: str, results: Mapping[str, Result]) -> None:
    """Draw throughput and throttles, with a line for each variant, and what else changes. As `figure_for`."""
    longest = max(result.seconds for result in results.values())
    unit, name = (
        (_HOUR, "hours") if longest > 4 * _HOUR else (60.0, "minutes") if longest > _HOUR / 6 else (1.0, "seconds")
    )
    rows = [row for row in _ROWS if row in _ALWAYS or _changes(row[1], results)]
    with figure_for(path, title) as figure:
        all_axes = figure.subplots(len(rows), 1, sharex=True)
        for axes, (label, value) in zip(all_axes, rows, strict=True):
            for number, (variant, result) in enumerate(results.items()):
                times = [point.seconds / unit for point in result.points]
                # Lines of equal values lie on each other, so each lets the one below show through.
                dashes = _DASHES[number % len(_DASHES)]
                values = [value(point) for point in result.points]
                axes.plot(times, values, dashes, label=variant, linewidth=1.4)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, alpha=0.3, linewidth=0.6)
            axes.yaxis.set_major_formatter("{x:,.0f}")
        all_axes[-1].set_xlabel(f"{name} of virtual time")
        if len(results) > 1:
            all_axes[0].legend(loc="best")


def _changes(value: Callable[[Point], float], results: Mapping[str, Result]) -> bool:
    """Whether a value is not the same all the time, in some variant."""
    return any(value(point) != value(result.points[0]) for result in results.values() for point in result.points)
