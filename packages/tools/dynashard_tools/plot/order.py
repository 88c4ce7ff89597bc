"""Draws the order in which a listing returns items against their true order, coloured by shard."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from dynashard_tools.plot.figure import figure_for

_NAMED = 16
"""Shards that a legend can name; more have a colour bar."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An item of a listing: its sort key, and its shard counted from 0."""

    sort: str
    shard: int


def ranks(listed: Sequence[Listed]) -> list[int]:
    """Return the place of each item in the true order, counted from 0, in the order of the listing."""
    places = {each.sort: place for place, each in enumerate(sorted(listed, key=lambda each: each.sort.encode()))}
    return [places[each.sort] for each in listed]


def inversions(true: Sequence[int]) -> int:
    """Count the items that come directly after one that should follow them; 0 for a listing in order."""
    return sum(1 for before, after in pairwise(true) if after < before)


def draw(path: Path, title: str, listed: Sequence[Listed], *, shards: int) -> None:
    """Draw every item as a dot: to the right by its true place, up by its place in the listing. As `figure_for`."""
    true, end = ranks(listed), max(len(listed) - 1, 1)
    colors = [each.shard for each in listed]
    with figure_for(path, title) as figure:
        axes = figure.subplots()
        axes.plot([0, end], [0, end], color="#999999", linewidth=0.8, zorder=0)
        dots = axes.scatter(true, range(len(true)), c=colors, cmap="turbo", vmin=0, vmax=max(shards - 1, 1), s=6)
        axes.set_xlabel("place in the true order")
        axes.set_ylabel("place in the listing")
        if shards <= _NAMED:
            axes.legend(*dots.legend_elements(num=None), title="shard", loc="lower right", fontsize=7)
        else:
            figure.colorbar(dots, ax=axes, label="shard")
