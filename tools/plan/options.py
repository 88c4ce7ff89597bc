"""The options of `dynashard plan`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

ItemBytes = Annotated[int | None, typer.Option(help="Stored bytes of an item, with names and keys.")]
Items = Annotated[Path | None, typer.Option(help="CSV or JSON Lines of items: measures size, skew, indexes.")]
Tenant = Annotated[str | None, typer.Option(help="Tenant of the rows of --items.")]
Writes = Annotated[float, typer.Option(help="Writes of items a second.")]
Reads = Annotated[float, typer.Option(help="Reads of single items a second.")]
Lists = Annotated[float, typer.Option(help="Pages of listings a second.")]
Page = Annotated[int, typer.Option(help="Items a page.")]
Order = Annotated[Literal["round_robin", "ordered", "shard"], typer.Option(help="Listing order.")]
Consistency = Annotated[Literal["eventual", "strong", "transactional"], typer.Option(help="Reads.")]
Transactional = Annotated[float, typer.Option(help="Part of the writes that are in transactions, 0 to 1.")]
Partitions = Annotated[int | None, typer.Option(help="Logical partitions with traffic; 1 if left out.")]
Hottest = Annotated[float | None, typer.Option(help="Share of the hottest partition, 0 to 1.")]
ZipfExponent = Annotated[float | None, typer.Option("--zipf", help="Zipf exponent of the shares.")]
Keys = Annotated[Path | None, typer.Option(help="File of partitions, one a line: measures the shares.")]
IndexShares = Annotated[list[str] | None, typer.Option(help="NAME=SHARE of an index's hottest partition.")]
IndexChanges = Annotated[list[str] | None, typer.Option(help="NAME=SHARE of the writes that change the index's key.")]
IndexBytes = Annotated[
    list[str] | None, typer.Option(help="NAME=BYTES of an entry of an index that does not store whole items.")
]
Stored = Annotated[int, typer.Option(help="Items in the table.")]
Load = Annotated[int, typer.Option(help="Items to load once into one partition.")]
Growth = Annotated[float, typer.Option(help="Percent a month.")]
Months = Annotated[int, typer.Option(help="Months to look ahead.")]
Placement = Annotated[str | None, typer.Option(help="calculated, modulo or random.")]
ShardCount = Annotated[int | None, typer.Option(help="Plan with this count, not the smallest that suffices.")]
SortKeys = Annotated[Literal["rising", "spread"] | None, typer.Option(help="Whether sort keys rise with time.")]
Fill = Annotated[float, typer.Option(help="Part of a partition's limits that a shard may use.")]
Mean = Annotated[float, typer.Option(help="Mean load as a part of the peak.")]
Utilization = Annotated[float, typer.Option(help="Target utilisation of provisioned capacity.")]
Region = Annotated[str, typer.Option(help="Region of the prices.")]
PriceFile = Annotated[Path | None, typer.Option(help="JSON file of prices instead of the included one.")]
SinglePrices = Annotated[list[str] | None, typer.Option(help="NAME=DOLLARS: one price, instead of the file's.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the plan into this file, .png or .svg.")]
Live = Annotated[bool, typer.Option("--live", help="Read the shard counts in force: of the local stack, or of --env.")]
