"""The options of `dynashard plan`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from dynashard_tools.entities import names_beginning
from dynashard_tools.options import NAMES


def share(text: str | float) -> float:
    """Return a part of a whole that is written as 0.7, 70 or 70%.

    Raises:
        ValueError: it is none.
    """
    number = float(str(text).removesuffix("%"))
    return number / 100 if number > 1 or str(text).endswith("%") else number


def _share(text: str | float) -> float:
    try:
        return share(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a part of a whole, such as 0.7 or 70%") from None


Entity = Annotated[
    str | None, typer.Argument(help=f"An entity; none with --item-bytes: {NAMES}.", autocompletion=names_beginning)
]
ItemBytes = Annotated[int | None, typer.Option(help="Stored bytes of an item, with names and keys.")]
Items = Annotated[Path | None, typer.Option(help="CSV or JSON Lines of items: measures size, skew, indexes.")]
Tenant = Annotated[str | None, typer.Option(help="Tenant of the rows of --items.")]
Writes = Annotated[float, typer.Option(help="Writes of items a second.")]
Reads = Annotated[float, typer.Option(help="Reads of single items a second.")]
Lists = Annotated[float, typer.Option(help="Pages of listings a second.")]
Page = Annotated[int, typer.Option(help="Items a page.")]
Order = Annotated[Literal["round_robin", "ordered", "shard"], typer.Option(help="Listing order.")]
Consistency = Annotated[Literal["eventual", "strong", "transactional"], typer.Option(help="Reads.")]
Transactional = Annotated[
    float, typer.Option(parser=_share, metavar="PART", help="Part of the writes that are in transactions.")
]
Partitions = Annotated[int | None, typer.Option(help="Logical partitions with traffic; 1 if left out.")]
Hottest = Annotated[float | None, typer.Option(parser=_share, metavar="PART", help="Share of the hottest partition.")]
ZipfExponent = Annotated[float | None, typer.Option("--zipf", help="Zipf exponent of the shares.")]
Keys = Annotated[Path | None, typer.Option(help="File of partitions, one a line: measures the shares.")]
IndexShares = Annotated[list[str] | None, typer.Option(help="NAME=SHARE of an index's hottest partition.")]
IndexChanges = Annotated[list[str] | None, typer.Option(help="NAME=SHARE of the writes that change the index's key.")]
IndexBytes = Annotated[
    list[str] | None, typer.Option(help="NAME=BYTES of an entry of an index that does not store whole items.")
]
Copies = Annotated[float, typer.Option(help="Materialized copies of an item that a write changes.")]
Stored = Annotated[int, typer.Option(help="Items in the table.")]
Load = Annotated[int, typer.Option(help="Items to load once into one partition.")]
Growth = Annotated[float, typer.Option(help="Percent a month.")]
Months = Annotated[int, typer.Option(help="Months to look ahead.")]
Placement = Annotated[str | None, typer.Option(help="calculated, epochs, modulo or random.")]
ShardCount = Annotated[int | None, typer.Option(help="Plan with this count, not the smallest that suffices.")]
SortKeys = Annotated[Literal["rising", "spread"] | None, typer.Option(help="Whether sort keys rise with time.")]
Fill = Annotated[
    float, typer.Option(parser=_share, metavar="PART", help="Part of a partition's limits that a shard may use.")
]
Mean = Annotated[float, typer.Option(parser=_share, metavar="PART", help="Mean load as a part of the peak.")]
Utilization = Annotated[
    float, typer.Option(parser=_share, metavar="PART", help="Target utilisation of provisioned capacity.")
]
Region = Annotated[str, typer.Option(help="Region of the prices.")]
PriceFile = Annotated[Path | None, typer.Option(help="JSON file of prices instead of the included one.")]
SinglePrices = Annotated[list[str] | None, typer.Option(help="NAME=DOLLARS: one price, instead of the file's.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the plan into this file, .png or .svg.")]
Live = Annotated[bool, typer.Option("--live", help="Read the shard counts in force: of the local stack, or of --env.")]
