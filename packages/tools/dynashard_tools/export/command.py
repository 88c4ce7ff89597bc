"""`dynashard export`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dynashard import Entity
from dynashard.errors import UndecodableItemError
from dynashard_serving.documents import TENANT
from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import exposed
from dynashard_tools.environments import environment_named
from dynashard_tools.export.choice import Choice, choose
from dynashard_tools.export.converting import Export, converted
from dynashard_tools.export.files import FORMATS, Format, new_file
from dynashard_tools.export.reading import chosen
from dynashard_tools.export.snapshot import Place, Snapshot
from dynashard_tools.failure import WITH_ERRORS, CommandError, on_interrupt
from dynashard_tools.left_out import LeftOut
from dynashard_tools.options import AsJson, Day, EntityName, Environment, Month, Workers
from dynashard_tools.printing import show
from dynashard_tools.progress import Work, working


class _Commands(TyperGroup):
    """Takes the name of an entity for the command `run`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = not args or args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else ["run", *args])


export = typer.Typer(no_args_is_help=True, cls=_Commands)


@export.callback()
def _root() -> None:
    """Write the items of an entity into a file: `dynashard export pings --day 2026-11-20 --to pings.parquet`.

    It reads the table. With `--to s3://bucket/prefix` DynamoDB exports its backup instead, which takes none of the
    table's capacity; the command `convert` writes a file from such an export.
    """


File = Annotated[str, typer.Option("--to", help="The file to write, .csv, .jsonl or .parquet.")]
FileFormat = Annotated[
    Format | None, typer.Option("--format", help="The format of the file. If left out, the name of the file decides.")
]
TimeField = Annotated[
    str | None,
    typer.Option("--time", help="The field that --day or --month is compared with; at or created_at if left out."),
]
Tenant = Annotated[str | None, typer.Option(help="Items of this tenant only.")]


@export.command()
def run(  # noqa: PLR0917 - typer calls it by name
    entity: EntityName,
    to: Annotated[
        str, typer.Option(help="The file to write, .csv, .jsonl or .parquet; or a place s3://bucket/prefix.")
    ],
    day: Day = None,
    month: Month = None,
    time_field: TimeField = None,
    tenant: Tenant = None,
    workers: Workers = 4,
    environment: Environment = None,
    file_format: FileFormat = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write a day's, a month's or all items into a file, or let DynamoDB export the table to S3.

    The word `run` may be left out.

    Into a file, it reads the table twice: half a read unit for every 4 KB. To S3, it takes no capacity: DynamoDB
    exports the backup of the whole table, from which `dynashard export convert` chooses.
    """
    choice = choose(exposed(entity).entity, day=day, month=month, time=time_field, tenant=tenant)
    if to.startswith("s3://"):
        if file_format is not None:
            raise CommandError(
                "--format is for files, and DynamoDB exports to S3 in a format of its own: leave --format out, and "
                "convert the export afterwards"
            )
        _to_s3(choice, Place.of(to), environment, as_json=as_json)
        return
    left_out = LeftOut()
    with closing(chosen(open_backend(environment), choice, workers=workers, left_out=left_out)) as found:
        summary, work = _written(Path(to), file_format, choice, found)
    units = f", {work.read_units:,.1f} read units"
    show({**summary, "read_units": work.read_units}, f"{_line(summary)}{units}", as_json=as_json)
    left_out.end()


@export.command()
def convert(  # noqa: PLR0917 - typer calls it by name
    entity: EntityName,
    source: Annotated[str, typer.Argument(help="The export: a folder, or s3://bucket/prefix/AWSDynamoDB/<id>.")],
    to: File,
    day: Day = None,
    month: Month = None,
    time_field: TimeField = None,
    tenant: Tenant = None,
    file_format: FileFormat = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write a file of an entity's items from a DynamoDB export.

    It leaves out what readers would not have seen at the time of the export: relocation markers, and items that had
    expired. It names items that do not fit their declaration on standard error; the exit status is 3 then.
    """
    choice = choose(exposed(entity).entity, day=day, month=month, time=time_field, tenant=tenant)
    refused: list[UndecodableItemError] = []

    def undecodable(error: UndecodableItemError) -> None:
        refused.append(error)
        print(f"left out: {error}", file=sys.stderr)

    found = Export.at(source, lambda: _client("s3"))
    summary, _ = _written(Path(to), file_format, choice, converted(found, choice, undecodable))
    left_out = f", {len(refused):,} left out" if refused else ""
    show({**summary, "refused": len(refused)}, f"{_line(summary)}{left_out}", as_json=as_json)
    if refused:
        raise typer.Exit(WITH_ERRORS)


def _written(
    path: Path, file_format: Format | None, choice: Choice, batches: Iterator[Sequence[Entity]]
) -> tuple[dict[str, Any], Work]:
    items = 0
    with working("{:>11,} items") as work, on_interrupt(lambda: f"{path} is unchanged"):
        with new_file(path, choice.model, file_format) as add:
            for batch in batches:
                add(batch)
                items += len(batch)
                work.advance(items)
        seconds = work.seconds
    size = path.stat().st_size
    return {**choice.as_dict(), "to": str(path), "items": items, "bytes": size, "seconds": seconds}, work


def _line(summary: Mapping[str, Any]) -> str:
    return (
        f"exported {plural(summary['items'], 'item')} of {summary['entity']} into {summary['to']}, "
        f"{summary['bytes']:,} bytes, in {summary['seconds']:.1f} s"
    )


def _to_s3(choice: Choice, place: Place, environment: str | None, *, as_json: bool) -> None:
    if environment is None:
        raise CommandError(
            f"the local engine cannot export to S3: name a file ({', '.join(FORMATS)}), or a deployment with --env"
        )
    backend = open_backend(environment)
    client = environment_named(environment).client("dynamodb")
    made = Snapshot(client).run(backend.table, place, lambda line: print(line, file=sys.stderr))
    options = "" if choice.tenant is None else f" --{TENANT.removesuffix('_id')} {choice.tenant}"
    show(
        made,
        f"exported {plural(made['items'], 'item')} of all entities, {made['bytes']:,} bytes, to {made['place']}",
        f"next: dynashard export convert {choice.entity.name} {made['place']} --to FILE{options}",
        as_json=as_json,
    )


def _client(service: str) -> Any:
    # Files and folders need no client.
    import boto3  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        return boto3.session.Session().client(service)
    except (BotoCoreError, ValueError) as error:
        raise CommandError(f"the client of {service} cannot be created: {error}") from error
