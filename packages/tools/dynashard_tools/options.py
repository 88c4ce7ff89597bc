"""Arguments and options that several commands have."""

from typing import Annotated, Final

import typer

from dynashard_tools.entities import declared, names_beginning

NAMES: Final = ", ".join(each.path for each in declared().entities)

Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be done; write nothing.")]
EntityName = Annotated[str, typer.Argument(help=f"An entity: {NAMES}.", autocompletion=names_beginning)]
AnyEntity = Annotated[
    str | None, typer.Argument(help=f"An entity; all if left out: {NAMES}.", autocompletion=names_beginning)
]
Partition = Annotated[str, typer.Argument(help="A logical partition, such as abc or tenant_id=abc.")]
Workers = Annotated[int, typer.Option(min=1, max=64, help="How many shards to read at a time.")]
Day = Annotated[str | None, typer.Option(help="A day in UTC, such as 2026-11-20.")]
Month = Annotated[str | None, typer.Option(help="A month in UTC, such as 2026-11.")]
