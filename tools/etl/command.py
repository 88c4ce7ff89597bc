"""`dynashard etl`."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from dynashard.transport.interface import metered
from tools.connection import open_backend
from tools.entities import exposed, names_beginning, partition_fields
from tools.etl.mapping import load_map
from tools.etl.run import Etl
from tools.progress import counting


def etl(
    entity: Annotated[
        str, typer.Argument(help="An entity, such as users or user.v1.User.", autocompletion=names_beginning)
    ],
    partition: Annotated[str, typer.Argument(help="A logical partition, such as abc.")],
    file: Annotated[
        Path,
        typer.Argument(help="A Python file with `change(item)`: the fields that it should have, or None."),
    ],
    environment: Annotated[
        str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Shards that are read at a time.")] = 4,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read all items of a partition in parallel, map them, and write back those that change.

    An item that somebody else changes meanwhile is read and mapped again. Run it again after an interruption.
    """
    model, change = exposed(entity).entity, load_map(file)
    values, backend, begun = partition_fields(model, partition), open_backend(environment), time.monotonic()
    with metered() as meter, counting("{:>9,} read, {:,} changed") as advance:
        task = Etl(
            backend.writer().collection(model),
            change,
            workers,
            dry_run,
            advance=lambda tally: advance(tally.read, tally.changed),
        )
        tally = task.run(values)
    summary = {
        **tally.as_dict(),
        "seconds": round(time.monotonic() - begun, 3),
        "read_units": meter.consumed.read_units,
        "write_units": meter.consumed.write_units,
        "dry_run": dry_run,
    }
    if as_json:
        typer.echo(json.dumps(summary))
        return
    typer.echo(
        f"{tally.read:,} read, {tally.changed:,} {'would change' if dry_run else 'changed'}, {tally.unchanged:,} "
        f"unchanged, {tally.gone:,} gone meanwhile, {tally.again:,} mapped again; {summary['seconds']:.1f} s, "
        f"{summary['read_units']:,.1f} read and {summary['write_units']:,.0f} write units"
    )
