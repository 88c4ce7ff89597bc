"""`dynashard etl`."""

from pathlib import Path
from typing import Annotated

import typer

from dynashard_tools.connection import open_backend
from dynashard_tools.entities import exposed, partition_fields
from dynashard_tools.etl.mapping import load_map
from dynashard_tools.etl.run import Etl
from dynashard_tools.options import AsJson, DryRun, EntityName, Environment, Partition, Workers
from dynashard_tools.printing import show
from dynashard_tools.progress import working


def etl(
    entity: EntityName,
    partition: Partition,
    file: Annotated[
        Path, typer.Argument(help="A Python file with `change(item)`, which returns the fields to set, or None.")
    ],
    environment: Environment = None,
    workers: Workers = 4,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Read all items of a partition in parallel, map them, and write back those that change.

    If somebody else changes an item meanwhile, it is read and mapped again. After an interruption, run it again.
    """
    model, change = exposed(entity).entity, load_map(file)
    values, backend = partition_fields(model, partition), open_backend(environment)
    with working("{:>9,} read, {:,} changed") as work:
        task = Etl(
            backend.writer().collection(model),
            change,
            workers,
            dry_run,
            advance=lambda tally: work.advance(tally.read, tally.changed),
        )
        tally = task.run(values)
    line = (
        f"{tally.read:,} read, {tally.changed:,} {'would change' if dry_run else 'changed'}, {tally.unchanged:,} "
        f"unchanged, {tally.gone:,} deleted meanwhile, {tally.again:,} mapped again; {work.seconds:.1f} s, "
        f"{work.read_units:,.1f} read and {work.write_units:,.0f} write units"
    )
    show(
        {**tally.as_dict(), "seconds": work.seconds, **work.units, "dry_run": dry_run},
        line,
        as_json=as_json,
    )
    task.left_out.end()
