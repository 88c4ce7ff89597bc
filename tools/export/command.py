"""`dynashard export`."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from domain import ENTITIES
from dynashard import Entity
from dynashard.errors import UndecodableItemError
from dynashard.transport.interface import metered
from tools.connection import open_backend
from tools.entities import exposed, names_beginning
from tools.export.choice import TENANT, Choice, choose
from tools.export.converting import Export, converted
from tools.export.files import FORMATS, Format, new_file
from tools.export.reading import chosen
from tools.export.snapshot import Place, Snapshot
from tools.failure import WITH_ERRORS, CommandError, CommandInterruptedError
from tools.progress import counting

HELP: Final = """Write the items of an entity into a file: `dynashard export pings --day 2026-11-20 --to pings.parquet`.

It reads the table, or with --to s3://bucket/prefix has DynamoDB export its backup, which takes none of the table's capacity. `convert` makes a file of what DynamoDB has exported.
"""  # noqa: E501 - the terminal's width breaks the lines


class _Commands(TyperGroup):
    """Takes the name of an entity for the command `run`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = not args or args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else ["run", *args])


export = typer.Typer(help=HELP, no_args_is_help=True, cls=_Commands)

EntityName = Annotated[
    str,
    typer.Argument(
        help="What: " + ", ".join(each.path for each in ENTITIES) + ".",
        autocompletion=names_beginning,
    ),
]
File = Annotated[str, typer.Option("--to", help="The file to write, .csv, .jsonl or .parquet.")]
FileFormat = Annotated[
    Format | None, typer.Option("--format", help="What to write; told from the file's name if left out.")
]
Day = Annotated[str | None, typer.Option(help="Items of this day in UTC, such as 2026-11-20.")]
Month = Annotated[str | None, typer.Option(help="Items of this month in UTC, such as 2026-11.")]
Time = Annotated[str | None, typer.Option(help="The field that says when; at or created_at if left out.")]
Tenant = Annotated[str | None, typer.Option(help="Items of this tenant only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]


@export.command()
def run(  # noqa: PLR0917 - typer calls it by name
    entity: EntityName,
    to: Annotated[
        str, typer.Option(help="The file to write, .csv, .jsonl or .parquet; or a place s3://bucket/prefix.")
    ],
    day: Day = None,
    month: Month = None,
    time_field: Annotated[str | None, typer.Option("--time", help="The field that says when.")] = None,
    tenant: Tenant = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Shards that are read at a time.")] = 4,
    environment: Annotated[
        str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")
    ] = None,
    file_format: FileFormat = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write a day's, a month's or all items into a file, or have DynamoDB export the table to S3.

    `run` may be left out. Into a file: reads the table twice, half a read unit for every 4 KB. To S3: no capacity; all
    of the table's backup is exported, and `dynashard export convert` chooses from it.
    """
    choice = choose(exposed(entity).entity, day=day, month=month, time=time_field, tenant=tenant)
    if to.startswith("s3://"):
        if file_format is not None:
            raise CommandError(
                "DynamoDB exports to S3 in a format of its own: leave --format out, and convert afterwards"
            )
        _to_s3(choice, Place.of(to), environment, as_json=as_json)
        return
    backend = open_backend(environment)
    with metered() as meter:
        summary = _written(Path(to), file_format, choice, chosen(backend, choice, workers=workers))
    _tell({**summary, "read_units": meter.consumed.read_units}, as_json=as_json)


@export.command()
def convert(  # noqa: PLR0917 - typer calls it by name
    entity: EntityName,
    source: Annotated[str, typer.Argument(help="The export: a folder, or s3://bucket/prefix/AWSDynamoDB/<id>.")],
    to: File,
    day: Day = None,
    month: Month = None,
    time_field: Annotated[str | None, typer.Option("--time", help="The field that says when.")] = None,
    tenant: Tenant = None,
    file_format: FileFormat = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Make a file of an entity's items in what DynamoDB has exported.

    What readers would not have seen at the moment of the export is left out. An item that does not fit its declaration
    is told on standard error and left out; the exit status is 3 then.
    """
    choice = choose(exposed(entity).entity, day=day, month=month, time=time_field, tenant=tenant)
    refused: list[UndecodableItemError] = []

    def undecodable(error: UndecodableItemError) -> None:
        refused.append(error)
        print(f"left out: {error}", file=sys.stderr)

    found = Export.at(source, lambda: _client("s3"))
    summary = _written(Path(to), file_format, choice, converted(found, choice, undecodable))
    _tell({**summary, "refused": len(refused)}, as_json=as_json)
    if refused:
        raise typer.Exit(WITH_ERRORS)


def _written(
    path: Path, file_format: Format | None, choice: Choice, batches: Iterator[Sequence[Entity]]
) -> dict[str, Any]:
    """Write batches of items into a file; what became of it."""
    begun, items = time.monotonic(), 0
    try:
        with counting("{:>11,} items") as advance, new_file(path, choice.model, file_format) as rows:
            for batch in batches:
                rows.add(batch)
                items += len(batch)
                advance(items)
    except KeyboardInterrupt:
        raise CommandInterruptedError(f"interrupted after {items:,} items; {path} is as it was") from None
    seconds = time.monotonic() - begun
    return {
        **choice.as_dict(),
        "to": str(path),
        "items": items,
        "bytes": path.stat().st_size,
        "seconds": round(seconds, 3),
    }


def _to_s3(choice: Choice, place: Place, environment: str | None, *, as_json: bool) -> None:
    if environment is None:
        raise CommandError(f"the local engine exports nothing to S3: name a file ({', '.join(FORMATS)}), or give --env")
    backend = open_backend(environment)
    snapshot = Snapshot(_client("dynamodb"))
    made = snapshot.run(backend.table, place, lambda line: print(line, file=sys.stderr))
    if as_json:
        typer.echo(json.dumps(dict(made)))
        return
    options = "" if choice.tenant is None else f" --{TENANT.removesuffix('_id')} {choice.tenant}"
    typer.echo(f"exported {made['items']:,} items of all entities, {made['bytes']:,} bytes, to {made['place']}")
    typer.echo(f"next: dynashard export convert {choice.entity.name} {made['place']} --to FILE{options}")


def _client(service: str) -> Any:
    # Files and folders need no client.
    import botocore.session  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        return botocore.session.get_session().create_client(service)
    except (BotoCoreError, ValueError) as error:
        raise CommandError(f"no client of {service} could be made: {error}") from error


def _tell(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(summary))
        return
    units = f", {summary['read_units']:,.1f} read units" if "read_units" in summary else ""
    refused = f", {summary['refused']:,} left out" if summary.get("refused") else ""
    typer.echo(
        f"exported {summary['items']:,} items of {summary['entity']} into {summary['to']}, {summary['bytes']:,} bytes, "
        f"in {summary['seconds']:.1f} s{units}{refused}"
    )
