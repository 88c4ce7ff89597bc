"""A picture of the order in which a listing brings items, against their true order, coloured by shard."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tools.plot.figure import figure_for

_NAMED = 16
"""Shards that a legend can name; more are told by their colours alone."""


@dataclass(frozen=True, slots=True)
class Brought:
    """An item as a listing brought it.

    Attributes:
        sort: its sort key.
        shard: where it lives, counted from 0.
    """

    sort: str
    shard: int


def ranks(brought: Sequence[Brought]) -> list[int]:
    """For each item, in the order of the listing, its place in the true order, counted from 0."""
    places = {each.sort: place for place, each in enumerate(sorted(brought, key=lambda each: each.sort.encode()))}
    return [places[each.sort] for each in brought]


def inversions(true: Sequence[int]) -> int:
    """How many items come directly after one that should come later: 0 for a listing in order."""
    return sum(1 for before, after in pairwise(true) if after < before)


def draw(path: Path, title: str, brought: Sequence[Brought], *, shards: int) -> None:
    """Draw every item as a dot: to the right by its true place, up by its place in the listing.

    Args:
        path: the file; replaced if it is there.
        title: stands above.
        brought: the items, in the order of the listing.
        shards: how many there are.

    Raises:
        CommandError: the file cannot be written.

    Cost: about half a second for loading matplotlib.
    """
    true, end = ranks(brought), max(len(brought) - 1, 1)
    colors = [each.shard for each in brought]
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
