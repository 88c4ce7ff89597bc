"""A picture of how items lie over the shards of a logical partition."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from dynashard.reads import ShardLoad
from tools.failure import CommandError

Format = Literal["png", "svg"]

_COLORS: Final = ("#2f6f9f", "#c97b2f")
_SIZE: Final = (10.0, 6.0)
"""In inches, at 100 dots each."""


def picture_format(path: Path) -> Format:
    """What the suffix of the file asks for.

    Raises:
        CommandError: neither PNG nor SVG, or a folder that is not there.
    """
    for name in ("png", "svg"):
        if path.suffix.lower() == f".{name}":
            break
    else:
        raise CommandError(f"{path} cannot be drawn: give --plot a file that ends in .png or .svg")
    if not path.parent.is_dir():
        raise CommandError(f"{path} cannot be written: there is no folder {path.parent}")
    return "png" if name == "png" else "svg"


def draw(path: Path, title: str, shards: Sequence[ShardLoad]) -> None:
    """Draw items and bytes of each shard as two rows of bars.

    Args:
        path: the file; replaced if it is there.
        title: stands above.
        shards: the loads, in order.

    Raises:
        CommandError: the file cannot be written.

    Cost: about half a second for loading matplotlib.
    """
    # Loaded here, so that no other command waits for it.
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    chosen = picture_format(path)
    # The same loads give the same file: no random ids, no date.
    with rc_context({"svg.hashsalt": title, "font.size": 9.0}):
        figure = Figure(figsize=_SIZE, dpi=100, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        figure.suptitle(title)
        _bars(above, "items", [shard.items for shard in shards], _COLORS[0])
        _bars(below, "bytes", [shard.bytes for shard in shards], _COLORS[1])
        below.set_xlabel("shard")
        try:
            figure.savefig(path, format=chosen, metadata={"Date": None} if chosen == "svg" else {"Software": None})
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from error


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
